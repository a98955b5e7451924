#include "cli/bench_table.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/str_cat.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string percent(const std::optional<double>& share) {
  return share ? str_cat(fixed(*share * 100, *share < 0.1 ? 1 : 0), " %") : "-";
}

std::string megabytes(double bytes) {
  return str_cat(fixed(bytes / 1e6, bytes < 1e7 ? 2 : bytes < 1e8 ? 1 : 0), " MB");
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json to_json(const BenchRecord& r) {
  return {{"model", r.model},
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
          {"bandwidth_share", or_null(r.bandwidth_share)},
          {"int8_share", or_null(r.int8_share)}};
}

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

struct Column {
  const char* name;
  size_t width;
  bool right = true;
};
// The model's width is that of the longest name.
constexpr Column kColumns[] = {{"model", 0, false},  {"threads", 7}, {"kv", 4, false}, {"test", 18, false},
                               {"t/s", 9},           {"lowest", 9},  {"highest", 9},   {"a token reads", 13},
                               {"of bandwidth", 12}, {"of int8", 7}};

std::vector<std::string> cells_of(const BenchRecord& r) {
  return {r.model,
          str_cat(r.threads),
          r.kv_type,
          r.row.test.name(),
          fixed(r.row.median, 2),
          fixed(r.row.min, 2),
          fixed(r.row.max, 2),
          megabytes(r.row.traffic.bytes_per_token),
          percent(r.bandwidth_share),
          percent(r.int8_share)};
}

std::string line_of(const std::vector<std::string>& cells, size_t model_width, bool md) {
  std::string line = md ? "|" : "";
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t width = i == 0 ? model_width : kColumns[i].width;
    const std::string gap(width - std::min(width, cells[i].size()), ' ');
    const std::string cell = kColumns[i].right ? gap + cells[i] : cells[i] + gap;
    line += md ? str_cat(" ", cell, " |") : str_cat(i == 0 ? "" : "  ", cell);
  }
  return line + "\n";
}

std::string header(size_t model_width, bool md) {
  std::vector<std::string> names;
  for (const Column& column : kColumns) names.emplace_back(column.name);
  std::string text = line_of(names, model_width, md);
  if (!md) return text;
  text += "|";
  for (const Column& column : kColumns) text += column.right ? " ---: |" : " --- |";
  return text + "\n";
}

}  // namespace

BenchTable::BenchTable(TableFormat format, const std::vector<std::string>& models) : format_(format) {
  for (const std::string& model : models) model_width_ = std::max(model_width_, model.size());
}

std::string BenchTable::add(const BenchRecord& record) {
  const bool first = n_rows_++ == 0;
  if (format_ == TableFormat::kJson) {
    const std::string text = to_json(record).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
    return str_cat(first ? "[\n" : ",\n", text);
  }
  if (format_ == TableFormat::kCsv) {
    const Json row = to_json(record);
    return str_cat(first ? csv_line(row, true) : "", csv_line(row, false));
  }
  const bool md = format_ == TableFormat::kMarkdown;
  return str_cat(first ? header(model_width_, md) : "", line_of(cells_of(record), model_width_, md));
}

std::string BenchTable::finish() {
  if (format_ != TableFormat::kJson) return "";
  return n_rows_ == 0 ? "[]\n" : "\n]\n";
}

}  // namespace stoker::cli
