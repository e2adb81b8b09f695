// Times of kernels as the OpenVINO of this process has them.
#pragma once

#include "device_api.hpp"

namespace vinelift {

struct KernelTime {
    std::string name;
    std::string how;
    std::chrono::microseconds time;
};

// The list, of the layout that this OpenVINO expects: `ov::ProfilingInfo` has a member more since 2026.3.
std::vector<ov::ProfilingInfo> profiling_infos(const std::vector<KernelTime>& times);

}  // namespace vinelift
