#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stoker {

/// One control group that this process is in, or an ancestor of one.
struct CgroupDir {
  int version;         ///< 1 or 2.
  std::string folder;  ///< Where its files are, `root` included.
  std::string path;    ///< Its name in the hierarchy, as in /proc/self/cgroup.
};

/// The groups of this process that `controller` ("memory", "cpu") may limit, in all hierarchies, each with all its
/// ancestors as far as they are mounted. `root` as for memory_limit().
std::vector<CgroupDir> cgroup_dirs(const std::string& root, const std::string& controller);

/// The first line of a file without its newline; empty when there is none.
std::string first_line(const std::string& path);

}  // namespace stoker
