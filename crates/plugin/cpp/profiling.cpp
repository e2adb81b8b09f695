#include "profiling.hpp"

#include <cstdio>
#include <cstring>

namespace vinelift {
namespace {

struct InfoBefore2026_3 {
    ov::ProfilingInfo::Status status;
    std::chrono::microseconds real_time;
    std::chrono::microseconds cpu_time;
    std::string node_name;
    std::string exec_type;
    std::string node_type;
};

struct Info : InfoBefore2026_3 {
    // 0: unknown.
    std::chrono::microseconds start_time{0};
};

bool is_before_2026_3() {
    int year = 0, release = 0;
    return std::sscanf(ov::get_openvino_version().buildNumber, "%d.%d", &year, &release) == 2 && year == 2026 && release < 3;
}

template <class Entry>
std::vector<ov::ProfilingInfo> listed(const std::vector<KernelTime>& times) {
    std::vector<Entry> entries(times.size());
    for (size_t k = 0; k < times.size(); k++) {
        entries[k].status = ov::ProfilingInfo::Status::EXECUTED;
        entries[k].real_time = entries[k].cpu_time = times[k].time;
        entries[k].node_name = times[k].name;
        entries[k].exec_type = times[k].how;
        entries[k].node_type = "Kernel";
    }
    // OpenVINO reads and frees the list as one of its own version's entries, as these are; the headers that this was
    // compiled with may declare others. A vector is three pointers, whatever its entries are.
    std::vector<ov::ProfilingInfo> list;
    static_assert(sizeof list == sizeof entries);
    char bytes[sizeof list];
    std::memcpy(bytes, static_cast<void*>(&list), sizeof bytes);
    std::memcpy(static_cast<void*>(&list), static_cast<void*>(&entries), sizeof bytes);
    std::memcpy(static_cast<void*>(&entries), bytes, sizeof bytes);
    return list;
}

}  // namespace

std::vector<ov::ProfilingInfo> profiling_infos(const std::vector<KernelTime>& times) {
    return is_before_2026_3() ? listed<InfoBefore2026_3>(times) : listed<Info>(times);
}

}  // namespace vinelift
