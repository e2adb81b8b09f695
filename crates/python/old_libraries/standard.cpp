// What headers of GCC since 9 call of the C++ library, by what the library had before.
#include <exception>
#include <new>
#include <sstream>

// GCC 9: an `ostringstream` of no arguments.
extern "C" void construct(void* stream) __asm__("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev");
void construct(void* stream) {
    new (stream) std::ostringstream(std::ios_base::out);
}

// GCC 11: `new` of an array of more elements than there can be.
void std::__throw_bad_array_new_length() {
    throw std::bad_array_new_length();
}

// GCC 12: the count of references of an exception, which the copy constructor and the destructor changed, and still do. Headers
// define these two, too, and call the functions below; the versions make them those of the C++ library, in a library that
// exports nothing of this.
extern "C" void copy_pointer(void* to, const void* from);
extern "C" void destroy_pointer(void* pointer);
__asm__(".symver copy_pointer, _ZNSt15__exception_ptr13exception_ptrC1ERKS0_@CXXABI_1.3.3");
__asm__(".symver destroy_pointer, _ZNSt15__exception_ptr13exception_ptrD1Ev@CXXABI_1.3.3");

void std::__exception_ptr::exception_ptr::_M_addref() noexcept {
    void* counted;
    copy_pointer(&counted, this);
}

void std::__exception_ptr::exception_ptr::_M_release() noexcept {
    destroy_pointer(this);
    _M_exception_object = nullptr;
}
