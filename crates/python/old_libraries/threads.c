// Whether the process has one thread, which C++ asks to count references without atomic instructions: the GNU C library
// says it since 2.32. Code that takes it for no is right with any number of threads.
char __libc_single_threaded = 0;
