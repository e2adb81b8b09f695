// Tells OpenVINO why there is no device, as an exception.
#include <stdexcept>
#include <string>

extern "C" [[noreturn]] void vinelift_refuse(const char* start, size_t len) {
    throw std::runtime_error(std::string(start, len));
}
