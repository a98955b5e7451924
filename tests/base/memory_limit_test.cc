#include "base/memory_limit.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/str_cat.h"
#include "tests/base/temp_dir.h"

namespace stoker {
namespace {

using test::TempDir;

constexpr uint64_t kMiB = 1u << 20;
constexpr const char* kHugeV1 = "9223372036854771712\n";  // what version 1 says for "none" with pages of 4 KiB

/// A made-up machine of 8 GiB.
struct Machine {
  TempDir dir;
  std::string cgroup, mountinfo;

  Machine() { dir.write("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  17 kB\n"); }
  void mount_v2(const std::string& root, const std::string& point) {
    mountinfo += str_cat("35 24 0:30 ", root, " ", point, " rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void mount_v1(const std::string& controllers, const std::string& root, const std::string& point) {
    mountinfo += str_cat("36 24 0:31 ", root, " ", point, " rw - cgroup cgroup rw,", controllers, "\n");
  }
  void set(const std::string& name, const std::string& text) { dir.write("sys/fs/cgroup/" + name, text); }
  const std::string& root() {
    dir.write("proc/self/cgroup", cgroup);
    dir.write("proc/self/mountinfo", "22 27 0:21 / /proc rw,relatime - proc proc rw\n" + mountinfo);
    return dir.path();
  }
  MemoryLimit limit() { return memory_limit(root()); }
  int quota() { return cpu_quota(root()); }
};

TEST(MemoryLimit, WithoutControlGroupsTheMachine) {
  Machine machine;
  EXPECT_EQ(machine.limit().bytes, 8192 * kMiB);
  EXPECT_EQ(machine.limit().source, "machine");
  EXPECT_EQ(machine.quota(), 0);
  TempDir nothing;
  EXPECT_EQ(memory_limit(nothing.path()).bytes, 0u);
  EXPECT_EQ(cpu_quota(nothing.path()), 0);
}

TEST(MemoryLimit, Version2WithAllAncestors) {
  Machine machine;
  machine.mount_v2("/", "/sys/fs/cgroup");
  machine.cgroup = "0::/user.slice/app.scope\n";
  machine.set("user.slice/app.scope/memory.max", "max\n");
  EXPECT_EQ(machine.limit().source, "machine");
  machine.set("user.slice/memory.max", "2147483648\n");
  EXPECT_EQ(machine.limit().bytes, 2048 * kMiB);
  EXPECT_EQ(machine.limit().source, "cgroup v2 /user.slice");
  machine.set("user.slice/app.scope/memory.max", "1073741824\n");
  EXPECT_EQ(machine.limit().source, "cgroup v2 /user.slice/app.scope");
  machine.set("user.slice/memory.high", "536870912\n");  // where the kernel starts to throttle
  EXPECT_EQ(machine.limit().bytes, 512 * kMiB);
  machine.set("user.slice/memory.max", "99999999999999\n");  // more than the machine has
  machine.set("user.slice/memory.high", "max\n");
  machine.set("user.slice/app.scope/memory.max", "max\n");
  EXPECT_EQ(machine.limit().source, "machine");
}

TEST(MemoryLimit, Version2InAContainerThatSeesItsGroupAsRoot) {
  Machine machine;
  machine.mount_v2("/", "/sys/fs/cgroup");
  machine.cgroup = "0::/\n";
  machine.set("memory.max", "1073741824\n");
  machine.set("cpu.max", "150000 100000\n");
  EXPECT_EQ(machine.limit().bytes, 1024 * kMiB);
  EXPECT_EQ(machine.limit().source, "cgroup v2 /");
  EXPECT_EQ(machine.quota(), 1);
}

TEST(MemoryLimit, TheMountsRootIsTakenOffThePath) {
  Machine machine;  // a container without a namespace of its own: paths are the host's, the mount shows a part
  machine.mount_v1("memory", "/docker/abc", "/sys/fs/cgroup/memory");
  machine.mount_v2("/docker/abc", "/sys/fs/cgroup/unified");
  machine.cgroup = "3:memory:/docker/abc/inner\n0::/docker/abc\n";
  machine.set("memory/memory.limit_in_bytes", "1073741824\n");
  machine.set("memory/inner/memory.limit_in_bytes", kHugeV1);
  EXPECT_EQ(machine.limit().bytes, 1024 * kMiB);
  EXPECT_EQ(machine.limit().source, "cgroup v1 /docker/abc");
  machine.set("unified/memory.max", "1000000000\n");
  EXPECT_EQ(machine.limit().source, "cgroup v2 /docker/abc");
}

TEST(MemoryLimit, ANameThatOnlyStartsAlikeIsAnotherGroup) {
  Machine machine;
  machine.mount_v1("memory", "/docker/ab", "/sys/fs/cgroup/other");
  machine.mount_v1("memory", "/docker/abc", "/sys/fs/cgroup/memory");
  machine.cgroup = "3:memory:/docker/abc\n";
  machine.set("other/memory.limit_in_bytes", "1000\n");
  machine.set("memory/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(machine.limit().bytes, 1024 * kMiB);
}

TEST(MemoryLimit, OutsideOfTheNamespaceTheMountsTopCounts) {
  Machine machine;
  machine.mount_v2("/", "/sys/fs/cgroup");
  machine.cgroup = "0::/../elsewhere\n";
  machine.set("memory.max", "1073741824\n");
  EXPECT_EQ(machine.limit().bytes, 1024 * kMiB);
}

TEST(MemoryLimit, Version1NestedAndItsHugeNumber) {
  Machine machine;
  machine.mount_v1("cpu,cpuacct", "/", "/sys/fs/cgroup/cpu,cpuacct");
  machine.mount_v1("memory", "/", "/sys/fs/cgroup/memory");
  machine.cgroup = "9:name=systemd:/\n4:memory:/a/b/c\n2:cpu,cpuacct:/a\n1:cpuset:/\n0::/\n";
  machine.set("memory/memory.limit_in_bytes", kHugeV1);
  machine.set("memory/a/b/c/memory.limit_in_bytes", "9223372036854710272\n");  // the same with pages of 64 KiB
  EXPECT_EQ(machine.limit().source, "machine");
  machine.set("memory/a/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(machine.limit().source, "cgroup v1 /a");
  machine.set("memory/a/b/memory.limit_in_bytes", "104857600\n");
  EXPECT_EQ(machine.limit().bytes, 100 * kMiB);
  EXPECT_EQ(machine.limit().source, "cgroup v1 /a/b");
}

TEST(MemoryLimit, HybridTakesTheSmallerOfBoth) {
  Machine machine;
  machine.mount_v1("memory", "/", "/sys/fs/cgroup/memory");
  machine.mount_v2("/", "/sys/fs/cgroup/unified");
  machine.cgroup = "4:memory:/job\n0::/session\n";
  machine.set("memory/job/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(machine.limit().source, "cgroup v1 /job");
  machine.set("unified/session/memory.max", "1073741824\n");
  EXPECT_EQ(machine.limit().source, "cgroup v2 /session");
}

TEST(MemoryLimit, OddMountPointsAndNames) {
  Machine machine;
  machine.mount_v2("/", "/sys/fs/cgroup/with\\040blank");
  machine.cgroup = "0::/a:b c\n";  // a colon and a blank are legal in names
  machine.set("with blank/a:b c/memory.max", "1073741824\n");
  EXPECT_EQ(machine.limit().source, "cgroup v2 /a:b c");
}

TEST(MemoryLimit, BrokenFilesAreNoLimit) {
  Machine machine;
  machine.mount_v2("/", "/sys/fs/cgroup");
  machine.mountinfo += "garbage\n - cgroup2\n1 2 3 4 5 - cgroup2\n";
  machine.cgroup = "0::/a\nnonsense\n::\n:\n";
  for (const char* text : {"", "\n", "-1\n", "abc\n", "12abc\n", "0\n", "99999999999999999999999\n"}) {
    machine.set("a/memory.max", text);
    EXPECT_EQ(machine.limit().source, "machine") << text;
  }
  for (const char* text : {"", "max\n", "max 100000\n", "100000\n", "0 100000\n", "1 0\n", "x y\n"}) {
    machine.set("a/cpu.max", text);
    EXPECT_EQ(machine.quota(), 0) << text;
  }
}

TEST(CpuQuota, Version2FloorOfTheSmallestAncestor) {
  Machine machine;
  machine.mount_v2("/", "/sys/fs/cgroup");
  machine.cgroup = "0::/a/b\n";
  machine.set("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(machine.quota(), 0);
  machine.set("a/cpu.max", "390000 100000\n");
  EXPECT_EQ(machine.quota(), 3);
  machine.set("a/b/cpu.max", "50000 100000\n");  // half a processor still is one thread
  EXPECT_EQ(machine.quota(), 1);
}

TEST(CpuQuota, Version1) {
  Machine machine;
  machine.mount_v1("cpu,cpuacct", "/", "/sys/fs/cgroup/cpu,cpuacct");
  machine.cgroup = "2:cpu,cpuacct:/a\n";
  machine.set("cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  machine.set("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(machine.quota(), 0);
  machine.set("cpu,cpuacct/a/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(machine.quota(), 4);
}

TEST(MemoryLimit, ThisMachineIsKnown) {
  const MemoryLimit limit = memory_limit();
  EXPECT_GT(limit.bytes, 16 * kMiB);
  EXPECT_FALSE(limit.source.empty());
}

TEST(ResidentBytes, GrowsWithWhatIsTouched) {
  const uint64_t before = resident_bytes();
  EXPECT_GT(before, 0u);
  std::vector<char> touched(32 * kMiB, 1);
  EXPECT_GE(resident_bytes(), before + 30 * kMiB);
  EXPECT_EQ(touched.back(), 1);
}

}  // namespace
}  // namespace stoker
