/* The configuration of libwebp: no vector intrinsics. */
