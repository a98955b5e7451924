#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace stoker {

/// How much memory the machine and the control groups leave to this process.
struct MemoryLimit {
  uint64_t bytes = 0;  ///< The smallest of all ancestors' limits and the machine's memory; 0: unknown.
  std::string source;  ///< For people: "cgroup v2 /user.slice", "machine".
};

/// Reads cgroup v1, v2, nested and hybrid trees below `root` ("" for the real one; tests pass a made-up tree that holds
/// proc/self/cgroup, proc/self/mountinfo, proc/meminfo and sys/fs/cgroup/...).
MemoryLimit memory_limit(const std::string& root = "");

/// The CPU quota of the same trees in whole processors (floor, at least 1); 0: none.
int cpu_quota(const std::string& root = "");

/// What the system counts as resident for this process now: anonymous, file-backed and shared pages. 0: unknown.
uint64_t resident_bytes();

/// "6G", "512M", "1048576K", "2T", "0K": digits and a suffix, powers of 1024. kInvalidArgument: says which of: empty
/// value, missing suffix, sign, fraction, overflow, out of range, no UTF-8, other characters.
Result<uint64_t> parse_size(const std::string& text);

/// 1536 MiB as "1.5 GiB".
std::string format_bytes(uint64_t bytes);

}  // namespace stoker
