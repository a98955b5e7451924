#include "engine/bench_energy.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/file.h"
#include "base/str_cat.h"

namespace stoker::engine {
namespace {

std::optional<uint64_t> read_number(const std::string& path) {
  const auto text = read_text(path, 64);
  if (!text) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

bool is_package(const std::filesystem::path& folder) {
  const std::string id = folder.filename();
  if (id.rfind("intel-rapl:", 0) != 0 || std::count(id.begin(), id.end(), ':') != 1) return false;
  const auto name = read_text(folder / "name", 64);
  return name && name->rfind("package-", 0) == 0;
}

}  // namespace

EnergyMeter EnergyMeter::find(const std::string& root) {
  EnergyMeter meter;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    if (!is_package(entry.path())) continue;
    Package package{.counter = entry.path() / "energy_uj"};
    const auto range = read_number(entry.path() / "max_energy_range_uj");
    if (!range || !read_number(package.counter)) return {};
    package.range = *range;
    meter.packages_.push_back(std::move(package));
  }
  return meter;
}

void EnergyMeter::start() {
  for (Package& package : packages_) package.started_at = read_number(package.counter);
}

std::optional<double> EnergyMeter::joules() const {
  uint64_t sum = 0;
  for (const Package& package : packages_) {
    const auto now = read_number(package.counter);
    const auto then = package.started_at;
    if (!now || !then) return std::nullopt;
    sum += *now - *then + (*now < *then ? package.range : 0);
  }
  if (packages_.empty()) return std::nullopt;
  return static_cast<double>(sum) * 1e-6;
}

}  // namespace stoker::engine
