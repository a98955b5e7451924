#include "cli/bench_compare.h"

#include "base/file.h"
#include "base/str_cat.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMostComparedBytes = 64u << 20;
/// What must be the same for two rows to be compared.
constexpr const char* kSame[] = {"model", "test", "threads", "kv_type"};

bool is_row(const Json& row) {
  if (!row.is_object() || !row.contains("tps_median") || !row["tps_median"].is_number()) return false;
  for (const char* key : kSame) {
    if (!row.contains(key)) return false;
  }
  return true;
}

}  // namespace

Result<OldRun> OldRun::read(const std::string& path) {
  STOKER_TRY(std::string text, read_text(path, kMostComparedBytes));
  OldRun old;
  old.rows_ = Json::parse(text, nullptr, false);
  bool fine = old.rows_.is_array();
  for (size_t i = 0; fine && i < old.rows_.size(); ++i) fine = is_row(old.rows_[i]);
  if (fine) return old;
  return Error{ErrorCode::kInvalidArgument, str_cat(path, ": wanted what `stoker bench --json` writes")};
}

std::optional<double> OldRun::ratio(const BenchRecord& record) const {
  const Json row = to_json(record, false);
  for (const Json& old : rows_) {
    bool same = true;
    for (const char* key : kSame) same = same && old[key] == row[key];
    const double then = old["tps_median"];
    if (same && then > 0) return record.row.median / then;
  }
  return std::nullopt;
}

}  // namespace stoker::cli
