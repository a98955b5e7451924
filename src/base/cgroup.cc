#include "base/cgroup.h"

#include <optional>
#include <string_view>

#include "base/file.h"

namespace stoker {
namespace {

constexpr uint64_t kMaxProcFile = 16u << 20;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t at = text.find(separator);
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

bool contains(std::string_view list, std::string_view name) {
  for (std::string_view item : split(list, ',')) {
    if (item == name) return true;
  }
  return false;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

/// mountinfo writes blanks and backslashes as \040.
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Mount {
  int version;
  std::string root;  ///< The group that is seen at `point`.
  std::string point;
  std::string controllers;  ///< Version 1 only, among other options.
};

/// "36 35 98:0 /root /point options [optional...] - fstype source super-options", see proc(5).
std::optional<Mount> parse_mount(std::string_view line) {
  const size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto before = split(line.substr(0, dash), ' ');
  const auto after = split(line.substr(dash + 3), ' ');
  if (before.size() < 5 || after.size() < 3) return std::nullopt;
  if (after[0] != "cgroup" && after[0] != "cgroup2") return std::nullopt;
  return Mount{after[0] == "cgroup" ? 1 : 2, unescape(before[3]), unescape(before[4]), std::string(after[2])};
}

std::vector<Mount> read_mounts(const std::string& root) {
  std::vector<Mount> out;
  const auto text = read_text(root + "/proc/self/mountinfo", kMaxProcFile);
  if (!text) return out;
  for (std::string_view line : split(*text, '\n')) {
    if (auto mount = parse_mount(line)) out.push_back(std::move(*mount));
  }
  return out;
}

/// `path` without the leading groups `prefix`; nothing when it is not below them or leads out of the namespace.
std::optional<std::string> relative(std::string_view path, std::string_view prefix) {
  if (prefix == "/") prefix = "";
  if (path.substr(0, prefix.size()) != prefix) return std::nullopt;
  path.remove_prefix(prefix.size());
  if (!path.empty() && path[0] != '/') return std::nullopt;
  for (std::string_view part : split(path, '/')) {
    if (part == "..") return std::nullopt;
  }
  return std::string(path == "/" ? "" : path);
}

/// The group `below` (relative to the mount) and its ancestors up to the mount's own root, innermost first.
void add_chain(const std::string& root, const Mount& mount, std::string below, std::vector<CgroupDir>& out) {
  const std::string top = mount.root == "/" ? "" : mount.root;
  while (true) {
    const std::string path = top + below;
    out.push_back({mount.version, root + mount.point + below, path.empty() ? "/" : path});
    if (below.empty()) return;
    below.resize(below.rfind('/'));
  }
}

/// The chain of the group `path` in the hierarchy that `matches` describes.
void add_hierarchy(const std::string& root, const std::vector<Mount>& mounts, std::string_view path,
                   const std::function<bool(const Mount&)>& matches, std::vector<CgroupDir>& out) {
  const Mount* any = nullptr;
  for (const Mount& mount : mounts) {
    if (!matches(mount)) continue;
    if (any == nullptr) any = &mount;
    if (auto below = relative(path, mount.root)) return add_chain(root, mount, *below, out);
  }
  // A mount made for another namespace: what it shows at its top is what this container was given.
  if (any != nullptr) add_chain(root, *any, "", out);
}

}  // namespace

std::vector<CgroupDir> cgroup_dirs(const std::string& root, const std::string& controller) {
  std::vector<CgroupDir> out;
  const auto text = read_text(root + "/proc/self/cgroup", kMaxProcFile);
  if (!text) return out;
  const std::vector<Mount> mounts = read_mounts(root);
  for (std::string_view line : split(*text, '\n')) {  // "4:memory:/a/b" or, for version 2, "0::/a/b"
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      add_hierarchy(
          root, mounts, path, [](const Mount& mount) { return mount.version == 2; }, out);
    } else if (contains(controllers, controller)) {
      add_hierarchy(
          root, mounts, path,
          [&](const Mount& mount) { return mount.version == 1 && contains(mount.controllers, controller); }, out);
    }
  }
  return out;
}

std::string first_line(const std::string& path) {
  auto text = read_text(path, kMaxProcFile);
  if (!text) return "";
  return text->substr(0, text->find('\n'));
}

}  // namespace stoker
