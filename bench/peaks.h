// What the machine can do at best, measured beside the kernels: their speed is quoted as a share of it.
#pragma once

#include <cstddef>

#include "base/cpu.h"

namespace stoker::bench {

/// Seconds of processor time of this thread: what other processes take does not count.
double thread_seconds();

/// Reads every byte once, with plain loads.
void read_all(const std::byte* data, size_t bytes);

/// int8 operations per second (a multiplication and an addition are two) of one thread that does nothing but the
/// dot-product instruction of this set. 0: not known for the set.
double int8_peak(Isa isa);
/// Likewise for f32 fma.
double float_peak(Isa isa);

}  // namespace stoker::bench
