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

/// Binds the calling thread to one processor. False: the system refuses.
bool pin_to(int cpu);

}  // namespace stoker
