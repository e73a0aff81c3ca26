/* Signs messages on the curve secp256k1 and verifies the signatures. */
#include "driver.h"
#include "secp256k1.h"
#include "secp256k1_preallocated.h"

/* The package puts its version before its names, and leaves these two functions to the user. */
#define NAME(name) rustsecp256k1_v0_14_##name

void NAME(default_illegal_callback_fn)(const char *message, void *data) {
    REQUIRE(!message && !data);
}
void NAME(default_error_callback_fn)(const char *message, void *data) {
    REQUIRE(!message && !data);
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 100);
    uint64_t seal = 0;
    void *place = allocate(NAME(context_preallocated_size)(SECP256K1_CONTEXT_NONE));
    NAME(context) *context = NAME(context_preallocated_create)(place, SECP256K1_CONTEXT_NONE);
    for (uint32_t round = 0; round < rounds; round++) {
        unsigned char key[32] = {1, 2, 3}, message[32] = {0}, bytes[64];
        memcpy(key + 20, &round, 4);
        memcpy(message + 8, &round, 4);
        NAME(pubkey) public_key;
        NAME(ecdsa_signature) signature;
        REQUIRE(NAME(ec_pubkey_create)(context, &public_key, key));
        REQUIRE(NAME(ecdsa_sign)(context, &signature, message, key, NULL, NULL));
        REQUIRE(NAME(ecdsa_verify)(context, &signature, message, &public_key));
        REQUIRE(NAME(ecdsa_signature_serialize_compact)(context, bytes, &signature));
        message[9] ^= 1;
        REQUIRE(!NAME(ecdsa_verify)(context, &signature, message, &public_key));
        seal = hash(bytes, sizeof bytes, seal);
    }
    printf("%016llx\n", (unsigned long long)seal);
    return 0;
}
