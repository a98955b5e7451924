#include "cli/bench_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/str_cat.h"
#include "cli/format.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(const std::optional<double>& share) {
  return share ? str_cat(fixed(*share * 100, *share < 0.1 ? 1 : 0), " %") : "-";
}

std::string megabytes(double bytes) {
  return str_cat(fixed(bytes / 1e6, bytes < 1e7 ? 2 : bytes < 1e8 ? 1 : 0), " MB");
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  for (size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
  return str_cat('"', text, '"');
}

std::string csv_line(const Json& row, bool keys) {
  std::string line;
  for (const auto& [key, value] : row.items()) {
    line += str_cat(line.empty() ? "" : ",", keys ? key : csv_field(value));
  }
  return line + "\n";
}

struct Cell {
  const char* column;
  size_t width;
  std::string text;
  bool right = true;
};

std::vector<Cell> cells_of(const BenchRecord& r, size_t model_width, bool energy, bool compares) {
  std::vector<Cell> cells{
      {"model", model_width, r.model, false},
      {"threads", 7, str_cat(r.threads)},
      {"kv", 4, r.kv_type, false},
      {"test", 18, r.row.test.name(), false},
      {"t/s", 9, fixed(r.row.median, 2)},
      {"lowest", 9, fixed(r.row.min, 2)},
      {"highest", 9, fixed(r.row.max, 2)},
      {"a token reads", 13, megabytes(r.row.traffic.bytes_per_token)},
      {"from disk", 10, r.row.disk_bytes_per_token > 0 ? megabytes(r.row.disk_bytes_per_token) : "-"},
      {"of bandwidth", 12, percent(r.bandwidth_share)},
      {"of int8", 7, percent(r.int8_share)}};
  const auto joules = r.row.joules_per_token;
  if (r.row.read_loop_share) {
    cells.push_back({"loop GB/s", 9, fixed(*r.row.read_loop_rate / 1e9, 1)});
    cells.push_back({"of loop", 7, percent(r.row.read_loop_share)});
  }
  if (energy) cells.push_back({"J a token", 9, joules ? fixed(*joules, 3) : "-"});
  if (compares) cells.push_back({"ratio", 6, r.ratio ? fixed(*r.ratio, 3) : "-"});
  return cells;
}

std::string line_of(const std::vector<Cell>& cells, bool md) {
  std::string line = md ? "|" : "";
  for (const Cell& cell : cells) {
    const std::string gap(cell.width - std::min(cell.width, cell.text.size()), ' ');
    const std::string text = cell.right ? gap + cell.text : cell.text + gap;
    line += md ? str_cat(" ", text, " |") : str_cat(line.empty() ? "" : "  ", text);
  }
  return line + "\n";
}

std::string header(std::vector<Cell> cells, bool md) {
  for (Cell& cell : cells) cell.text = cell.column;
  std::string text = line_of(cells, md);
  if (!md) return text;
  text += "|";
  for (const Cell& cell : cells) text += cell.right ? " ---: |" : " --- |";
  return text + "\n";
}

}  // namespace

nlohmann::ordered_json to_json(const BenchRecord& r, bool compares) {
  Json json = {{"model", r.model},
               {"test", r.row.test.name()},
               {"depth", r.row.test.depth},
               {"streams", r.row.test.streams},
               {"threads", r.threads},
               {"kv_type", r.kv_type},
               {"isa", r.isa},
               {"repetitions", r.row.repetitions},
               {"tps_median", r.row.median},
               {"tps_min", r.row.min},
               {"tps_max", r.row.max},
               {"bytes_per_token", r.row.traffic.bytes_per_token},
               {"disk_bytes_per_token", r.row.disk_bytes_per_token},
               {"bandwidth_share", or_null(r.bandwidth_share)},
               {"int8_share", or_null(r.int8_share)},
               {"joules_per_token", or_null(r.row.joules_per_token)}};
  if (r.row.read_loop_share) {
    json["read_loop_bytes_per_second"] = *r.row.read_loop_rate;
    json["read_loop_share"] = *r.row.read_loop_share;
  }
  if (compares) json["ratio"] = or_null(r.ratio);
  return json;
}

BenchTable::BenchTable(TableFormat format, const std::vector<std::string>& models, bool compares)
    : format_(format), compares_(compares) {
  for (const std::string& model : models) model_width_ = std::max(model_width_, model.size());
}

std::string BenchTable::add(const BenchRecord& record) {
  const bool first = n_rows_++ == 0;
  if (first) has_energy_ = record.row.joules_per_token.has_value();
  if (format_ == TableFormat::kJson) {
    const std::string text = to_json(record, compares_).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
    return str_cat(first ? "[\n" : ",\n", text);
  }
  if (format_ == TableFormat::kCsv) {
    const Json row = to_json(record, compares_);
    return str_cat(first ? csv_line(row, true) : "", csv_line(row, false));
  }
  const bool md = format_ == TableFormat::kMarkdown;
  const std::vector<Cell> cells = cells_of(record, model_width_, has_energy_, compares_);
  return str_cat(first ? header(cells, md) : "", line_of(cells, md));
}

std::string BenchTable::finish() {
  if (format_ != TableFormat::kJson) return "";
  return n_rows_ == 0 ? "[]\n" : "\n]\n";
}

}  // namespace stoker::cli
