// Functions and data that the GNU C library has as symbols since 2.33, by those that it had before.
#define _GNU_SOURCE
#include <sys/stat.h>

// Which `struct stat64` the functions below fill.
#ifdef __x86_64__
enum { LAYOUT = 1 };
#else
enum { LAYOUT = 0 };
#endif

int __xstat64(int layout, const char *path, struct stat64 *out);
int __fxstat64(int layout, int file, struct stat64 *out);
int __fxstatat64(int layout, int folder, const char *path, struct stat64 *out, int flags);

int stat64(const char *path, struct stat64 *out) {
    return __xstat64(LAYOUT, path, out);
}

int fstat64(int file, struct stat64 *out) {
    return __fxstat64(LAYOUT, file, out);
}

int fstatat64(int folder, const char *path, struct stat64 *out, int flags) {
    return __fxstatat64(LAYOUT, folder, path, out, flags);
}
