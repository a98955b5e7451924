// What one thread can do at best: the loops behind `stoker bench --machine`, and the bounds that kernels are quoted
// against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace stoker::engine {

/// Seconds of processor time of this thread: what other processes take does not count.
double thread_seconds();

/// How memory is read fastest: some processors want one ascending stream, others, whose prefetcher stops at the end of
/// a page, several pages side by side (1.6 times as fast on an Emerald Rapids).
enum class ReadOrder { kInOrder, kPages };
inline constexpr ReadOrder kReadOrders[] = {ReadOrder::kInOrder, ReadOrder::kPages};
inline constexpr int64_t kReadUnit = 32 << 10;

/// Reads a word of every line once, with plain loads. `bytes` is a multiple of kReadUnit.
void read_all(const std::byte* data, size_t bytes, ReadOrder order);

/// int8 operations per second (a multiplication and an addition are two) of one thread that does nothing but the
/// dot-product instruction of this set; of scalar code, 32-bit multiplications and additions. `rounds` is how long it
/// looks, of which the best fifth counts. 0: not known for the set.
double int8_peak(Isa isa, int64_t rounds = 1'000'000);
/// Likewise for f32 fma; of scalar code, multiplications and additions.
double float_peak(Isa isa, int64_t rounds = 1'000'000);

}  // namespace stoker::engine
