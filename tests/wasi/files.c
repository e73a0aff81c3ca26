// What a C program does with files, through its library: every line is a call and what came of it. Run with an empty folder
// opened as `/d`. Compiled with ziglang 0.17.0: `python3 -m ziglang cc -target wasm32-wasi
// -mcpu=mvp+bulk_memory+multivalue+mutable_globals+nontrapping_fptoint+sign_ext -Os -s files.c -o files.wasm`.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHOW(call) show(#call, (long long)(call))

static void show(const char *call, long long result) {
    printf("%s = %lld%s%s\n", call, result, result == -1 ? " " : "", result == -1 ? strerror(errno) : "");
}

static void list(const char *path) {
    DIR *dir = opendir(path);
    char names[64][32];
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir)) && count < 64;)
        snprintf(names[count++], 32, "%s%s", entry->d_name, entry->d_type == DT_DIR ? "/" : "");
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (strcmp(names[i], names[j]) > 0) {
                char swap[32];
                memcpy(swap, names[i], 32), memcpy(names[i], names[j], 32), memcpy(names[j], swap, 32);
            }
    printf("%s:", path);
    for (int i = 0; i < count; i++) printf(" %s", names[i]);
    printf("\n");
    if (dir) closedir(dir);
}

static void files(void) {
    char buffer[16] = {0};
    int fd = open("/d/a", O_CREAT | O_EXCL | O_RDWR, 0666);
    SHOW(write(fd, "one,two", 7));
    SHOW(open("/d/a", O_CREAT | O_EXCL | O_RDWR, 0666));
    SHOW(pread(fd, buffer, 3, 4));
    SHOW(pwrite(fd, "T", 1, 4));
    SHOW(lseek(fd, 0, SEEK_CUR));
    SHOW(lseek(fd, -3, SEEK_END));
    SHOW(lseek(fd, -1, SEEK_SET));
    SHOW(read(fd, buffer, sizeof buffer));
    SHOW(memcmp(buffer, "Two", 3));
    SHOW(ftruncate(fd, 5));
    struct stat stat;
    SHOW(fstat(fd, &stat));
    SHOW(stat.st_size);
    SHOW(S_ISREG(stat.st_mode) != 0);
    struct timespec times[] = {{1, 5}, {2, 0}};
    SHOW(futimens(fd, times));
    SHOW(fstat(fd, &stat));
    SHOW(stat.st_atim.tv_nsec);
    SHOW(stat.st_mtim.tv_sec);
    SHOW(fsync(fd));
    SHOW(fdatasync(fd));
    SHOW(posix_fadvise(fd, 0, 5, POSIX_FADV_WILLNEED));
    SHOW(isatty(fd));
    SHOW(close(fd));
    SHOW(close(fd));
    fd = open("/d/a", O_WRONLY | O_APPEND);
    SHOW(write(fd, "!", 1));
    SHOW(fcntl(fd, F_GETFL) & O_APPEND ? 1 : 0);
    SHOW(read(fd, buffer, 1));
    SHOW(close(fd));
    fd = open("/d/a", O_RDONLY);
    SHOW(write(fd, "x", 1));
    SHOW(read(fd, buffer, sizeof buffer));
    SHOW(memcmp(buffer, "one,T!", 6));
    SHOW(close(fd));
    SHOW(open("/d/a", O_RDONLY | O_DIRECTORY));
    SHOW(open("/d/a/", O_RDONLY));
    SHOW(open("/d", O_WRONLY));
    SHOW(shutdown(1, SHUT_RD));
}

static void directories(void) {
    struct stat stat;
    char buffer[8];
    SHOW(mkdir("/d/sub", 0777));
    SHOW(mkdir("/d/sub", 0777));
    SHOW(rename("/d/a", "/d/sub/b"));
    SHOW(link("/d/sub/b", "/d/hard"));
    SHOW(lstat("/d/hard", &stat));
    SHOW(stat.st_nlink);
    SHOW(symlink("sub/b", "/d/soft"));
    SHOW(readlink("/d/soft", buffer, sizeof buffer));
    SHOW(lstat("/d/soft", &stat));
    SHOW(S_ISLNK(stat.st_mode) != 0);
    SHOW(access("/d/soft", R_OK));
    SHOW(unlink("/d/sub"));
    SHOW(rmdir("/d/sub"));
    list("/d");
    list("/d/sub");
    int dir = open("/d/sub", O_RDONLY | O_DIRECTORY), file = openat(dir, "b", O_RDONLY);
    SHOW(read(file, buffer, 3));
    SHOW(openat(dir, "../soft", O_RDONLY));
    SHOW(close(dir) + close(file));
    SHOW(symlink("../../etc", "/d/out"));
    SHOW(open("/d/out/passwd", O_RDONLY));
    SHOW(open("/d/../etc/passwd", O_RDONLY));
    SHOW(symlink("/etc", "/d/absolute"));
    SHOW(open("/etc/passwd", O_RDONLY));
    SHOW(unlink("/d/out") + unlink("/d/soft") + unlink("/d/hard") + unlink("/d/sub/b") + rmdir("/d/sub"));
    list("/d");
}

static void waiting(void) {
    struct pollfd fds[] = {{0, POLLIN, 0}, {1, POLLOUT, 0}};
    SHOW(poll(fds, 2, -1) >= 1);
    struct timespec pause = {0, 20 * 1000 * 1000}, before, after;
    SHOW(clock_gettime(CLOCK_MONOTONIC, &before));
    SHOW(nanosleep(&pause, NULL));
    clock_gettime(CLOCK_MONOTONIC, &after);
    SHOW((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 19);
    SHOW(time(NULL) > 1700000000);
    unsigned char random[32] = {0}, zero[32] = {0};
    SHOW(getentropy(random, 32));
    SHOW(memcmp(random, zero, 32) != 0);
}

int main(int argc, char **argv) {
    printf("%d %s\n", argc, argv[argc - 1]);
    files();
    directories();
    waiting();
    int c, sum = 0;
    while ((c = getchar()) != EOF) sum += c;
    printf("input %d\n", sum);
    return 7;
}
