#include "base/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

#include "base/cgroup.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/str_cat.h"

namespace stoker {
namespace {

// Version 1 says "no limit" with the largest multiple of the page size in an int64, which depends on the page size.
constexpr uint64_t kNoLimit = uint64_t{1} << 62;

/// A plain number, with nothing behind it but blanks and the like. Nothing for "max", "-1" and other words.
std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || (end.ptr != text.data() + text.size() && *end.ptr != ' ')) return std::nullopt;
  return value;
}

/// MemTotal in bytes; 0: unknown.
uint64_t machine_memory(const std::string& root) {
  const Result<std::string> text = read_text(root + "/proc/meminfo", 1u << 20);
  if (!text) return 0;
  const size_t key = text->find("MemTotal:");
  if (key == std::string::npos) return 0;
  const size_t digits = text->find_first_of("0123456789", key);
  if (digits == std::string::npos) return 0;
  const std::optional<uint64_t> kib =
      parse_number(std::string_view(*text).substr(digits, text->find('\n', digits) - digits));
  return kib ? checked_mul<uint64_t>(*kib, 1024).value_or(0) : 0;
}

void lower(MemoryLimit& limit, std::string_view text, const CgroupDir& dir) {
  const std::optional<uint64_t> value = parse_number(text);
  if (!value || *value == 0 || *value >= kNoLimit || (limit.bytes != 0 && *value >= limit.bytes)) return;
  limit = {*value, str_cat("cgroup v", dir.version, " ", dir.path)};
}

/// Whole processors of `quota` us in every `period` us; 0: no limit.
int whole_cpus(std::string_view quota, std::string_view period) {
  const std::optional<uint64_t> run = parse_number(quota), of = parse_number(period);
  if (!run || !of || *run == 0 || *of == 0) return 0;
  return static_cast<int>(std::clamp<uint64_t>(*run / *of, 1, 1u << 20));
}

int quota_of(const CgroupDir& dir) {
  if (dir.version == 1) {
    return whole_cpus(first_line(dir.folder + "/cpu.cfs_quota_us"), first_line(dir.folder + "/cpu.cfs_period_us"));
  }
  const std::string line = first_line(dir.folder + "/cpu.max");  // "200000 100000" or "max 100000"
  const size_t blank = line.find(' ');
  return blank == std::string::npos ? 0 : whole_cpus(line.substr(0, blank), line.substr(blank + 1));
}

}  // namespace

MemoryLimit memory_limit(const std::string& root) {
  MemoryLimit limit;
  if (const uint64_t bytes = machine_memory(root); bytes != 0) limit = {bytes, "machine"};
  for (const CgroupDir& dir : cgroup_dirs(root, "memory")) {
    if (dir.version == 1) {
      lower(limit, first_line(dir.folder + "/memory.limit_in_bytes"), dir);
    } else {
      lower(limit, first_line(dir.folder + "/memory.max"), dir);
      // Above `high` the kernel slows the process down to a crawl: for us that is the limit too.
      lower(limit, first_line(dir.folder + "/memory.high"), dir);
    }
  }
  return limit;
}

int cpu_quota(const std::string& root) {
  int smallest = 0;
  for (const CgroupDir& dir : cgroup_dirs(root, "cpu")) {
    const int quota = quota_of(dir);
    if (quota != 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  }
  return smallest;
}

uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  in >> total >> resident;
  return in ? resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace stoker
