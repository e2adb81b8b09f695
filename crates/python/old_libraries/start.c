// Until 2.33, a program told the GNU C library what runs its constructors; since 2.34, the start files of compilers leave
// that to the library, and an old one would run none. A program that tells it starts with both. The linker calls this
// function in place of the library's (`--wrap`).

typedef void Constructor(int, char **, char **);
extern Constructor *__init_array_start[] __attribute__((visibility("hidden")));
extern Constructor *__init_array_end[] __attribute__((visibility("hidden")));
void _init(void);

int __real___libc_start_main(int (*main)(int, char **, char **), int count, char **arguments, Constructor *construct,
                             void (*destroy)(void), void (*unload)(void), void *stack);

static void construct_all(int count, char **arguments, char **environment) {
    _init();
    for (Constructor **next = __init_array_start; next < __init_array_end; next++) {
        (*next)(count, arguments, environment);
    }
}

int __wrap___libc_start_main(int (*main)(int, char **, char **), int count, char **arguments, Constructor *construct,
                             void (*destroy)(void), void (*unload)(void), void *stack) {
    (void)construct;
    return __real___libc_start_main(main, count, arguments, construct_all, destroy, unload, stack);
}
