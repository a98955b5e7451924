#pragma once

#include <span>
#include <string>
#include <vector>

namespace stoker {

/// The processors that the calling thread may run on, by the system's numbers, ascending.
std::vector<int> allowed_cpus();
/// The same as it was when first asked for: before any thread was pinned.
const std::vector<int>& process_cpus();

/// The order in which workers are pinned: one processor of each core first, then the cores' second threads and so on;
/// within that by memory node, so that neighbouring workers, which have neighbouring rows, share a node.
/// Reads sys/devices/system below `root` ("" for the real one); what is not told there counts as a core of its own.
std::vector<int> cpu_order(std::span<const int> cpus, const std::string& root = "");

/// Binds the calling thread to these processors. False: the system refuses, or there are none.
bool pin_to(std::span<const int> cpus);
inline bool pin_to(int cpu) { return pin_to(std::span(&cpu, 1)); }
/// Takes a thread out of what the one that began it is bound to: it may run wherever the process may.
inline void unpin() { pin_to(process_cpus()); }

}  // namespace stoker
