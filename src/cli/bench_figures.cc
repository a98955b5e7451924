#include "cli/bench_figures.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"
#include "base/pool.h"
#include "base/str_cat.h"
#include "cli/common.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr uint64_t kMostFiguresBytes = 1 << 20;
/// Raised where kernels or the ways to measure become faster: figures of before are measured anew.
constexpr int kFiguresVersion = 2;

std::optional<Isa> isa_of(const std::string& name) {
  for (const Isa isa : available_isas()) {
    if (isa_name(isa) == name) return isa;
  }
  return std::nullopt;
}

std::optional<gguf::TensorType> type_of(const std::string& name) {
  for (uint32_t id = 0; id < 64; ++id) {
    if (gguf::type_info(id) && gguf::type_info(id)->name == name) return static_cast<gguf::TensorType>(id);
  }
  return std::nullopt;
}

/// Throws what nlohmann throws.
StoredFigures from_json(const Json& json) {
  StoredFigures s{.cpu = json.at("cpu"),
                  .usable = json.at("processors"),
                  .measured_at = json.at("measured_at"),
                  .quick = json.at("quick"),
                  .disk_path = json.at("disk_path")};
  for (const Json& read : json.at("read")) {
    s.figures.reads.push_back({read.at("threads"), read.at("bytes_per_second"), read.at("median_bytes_per_second")});
  }
  for (const Json& peak : json.at("peak")) {
    const auto isa = isa_of(peak.at("isa"));
    if (!isa) continue;
    s.figures.peaks.push_back(
        {*isa, peak.at("threads"), peak.at("int8_ops_per_second"), peak.at("f32_ops_per_second")});
  }
  for (const Json& read : json.at("disk")) {
    s.disk.push_back({read.at("bytes"), read.at("depth"), read.at("bytes_per_second"), read.at("reads_per_second")});
  }
  if (!json.contains("kernels")) return s;
  for (const Json& kernel : json.at("kernels")) {
    const auto isa = isa_of(kernel.at("isa"));
    const auto type = type_of(kernel.at("type"));
    if (!isa || !type) continue;
    s.kernels.push_back({*isa, kernel.at("threads"), {*type, kernel.at("rows"), kernel.at("bytes_per_second")}});
  }
  return s;
}

bool is_this_machine(const Json& entry) {
  return entry.is_object() && entry.contains("cpu") && entry["cpu"] == cpu_model() && entry.contains("processors") &&
         entry["processors"] == usable_cpus();
}

bool is_current(const Json& entry) {
  return entry.contains("version") && entry["version"] == kFiguresVersion && is_this_machine(entry);
}

/// The file's list; empty when there is none, or no such list in it: it is a cache, and written anew.
Json read_entries() {
  const auto text = read_text(figures_path(), kMostFiguresBytes);
  if (!text) return Json::array();
  Json json = Json::parse(*text, nullptr, false);
  return json.is_array() ? json : Json::array();
}

}  // namespace

Json to_json(const StoredFigures& s) {
  Json read = Json::array(), peak = Json::array(), disk = Json::array();
  for (const auto& r : s.figures.reads) {
    read.push_back({{"threads", r.threads}, {"bytes_per_second", r.bytes}, {"median_bytes_per_second", r.median}});
  }
  for (const auto& p : s.figures.peaks) {
    peak.push_back({{"isa", isa_name(p.isa)},
                    {"threads", p.threads},
                    {"int8_ops_per_second", p.int8_ops},
                    {"f32_ops_per_second", p.float_ops}});
  }
  for (const auto& d : s.disk) {
    disk.push_back({{"bytes", d.bytes},
                    {"depth", d.depth},
                    {"bytes_per_second", d.bytes_per_second},
                    {"reads_per_second", d.reads_per_second}});
  }
  Json json = {{"version", kFiguresVersion},
               {"cpu", s.cpu},
               {"processors", s.usable},
               {"measured_at", s.measured_at},
               {"quick", s.quick},
               {"read", read},
               {"peak", peak},
               {"disk_path", s.disk_path},
               {"disk", disk}};
  for (const auto& k : s.kernels) {
    json["kernels"].push_back({{"isa", isa_name(k.isa)},
                               {"threads", k.threads},
                               {"type", gguf::type_name(k.rate.type)},
                               {"rows", k.rate.rows},
                               {"bytes_per_second", k.rate.bytes}});
  }
  return json;
}

std::string figures_path() {
  const std::string home = home_folder();
  return home.empty() ? "" : str_cat(home, "/machine.json");
}

std::optional<StoredFigures> load_figures() {
  for (const Json& entry : read_entries()) {
    if (!is_current(entry)) continue;
    try {
      return from_json(entry);
    } catch (const Json::exception&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Status save_figures(const StoredFigures& stored) {
  const std::string path = figures_path();
  if (path.empty()) return Error{ErrorCode::kIo, "neither STOKER_HOME nor HOME is set: the figures are not kept"};
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  Json all = Json::array();
  for (Json& entry : read_entries()) {
    if (!is_this_machine(entry)) all.push_back(std::move(entry));
  }
  StoredFigures kept = stored;
  const auto before = load_figures();
  if (before && !before->quick && stored.quick) {
    if (stored.kernels.empty()) return Ok{};
    kept = *before;
    kept.kernels = stored.kernels;
  }
  if (before && kept.kernels.empty()) kept.kernels = before->kernels;
  if (before && kept.disk.empty() && (stored.quick || !before->quick)) {
    kept.disk = before->disk;
    kept.disk_path = before->disk_path;
  }
  all.push_back(to_json(kept));
  return write_file(path, all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string age_text(int64_t seconds) {
  if (seconds < 2 * 60) return "less than 2 min";
  if (seconds < 2 * 3600) return str_cat(seconds / 60, " min");
  if (seconds < 2 * 86400) return str_cat(seconds / 3600, " hours");
  return str_cat(seconds / 86400, " days");
}

}  // namespace stoker::cli
