// stoker bench --kernels
#include "engine/bench_kernels.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/pool.h"
#include "base/str_cat.h"
#include "cli/bench_args.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

/// kInvalidArgument: no type of this name has kernels.
Result<std::vector<gguf::TensorType>> types_of(const std::vector<std::string>& names, const kernels::Table& table) {
  std::vector<gguf::TensorType> types;
  std::string known;
  const std::vector<gguf::TensorType> all = engine::kernel_types(table);
  for (const gguf::TensorType type : all) known += str_cat(" ", gguf::type_name(type));
  for (const std::string& name : names) {
    if (name.empty()) continue;  // what CLI11 makes of no name at all
    const auto found =
        std::find_if(all.begin(), all.end(), [&](auto type) { return gguf::type_name(type) == upper(name); });
    if (found == all.end()) {
      return Error{ErrorCode::kInvalidArgument,
                   str_cat("--kernels ", quoted(name), ": no such type; there are", known)};
    }
    types.push_back(*found);
  }
  return types;
}

/// Lines as they come, or one JSON array at the end.
class Writer {
 public:
  Writer(bool json, int threads) : json_(json), threads_(threads) {}

  void bounds(const engine::KernelBounds& b, std::string_view isa) {
    if (json_) return;
    char text[200];
    std::snprintf(text, sizeof text, "%s, %d threads: read %.1f GB/s, int8 %.0f GOP/s, f32 %.0f GFLOP/s\n\n",
                  std::string(isa).c_str(), threads_, b.read / 1e9, b.int8_ops / 1e9, b.float_ops / 1e9);
    write(text);
    std::snprintf(text, sizeof text, "%-8s %-8s %5s %9s %9s %15s\n", "type", "isa", "rows", "GB/s", "GOP/s",
                  "of the bound");
    write(text);
  }

  void row(const engine::KernelRow& r) {
    const std::string type(gguf::type_name(r.type)), isa(isa_name(r.isa));
    if (json_) {
      rows_.push_back({{"type", type},
                       {"isa", isa},
                       {"rows", r.rows},
                       {"threads", threads_},
                       {"bytes_per_second", r.weight_bytes},
                       {"ops_per_second", r.operations},
                       {"bound_share", r.share}});
      return;
    }
    char text[200];
    std::snprintf(text, sizeof text, "%-8s %-8s %5lld %9.1f %9.0f %13.0f %%\n", type.c_str(), isa.c_str(),
                  static_cast<long long>(r.rows), r.weight_bytes / 1e9, r.operations / 1e9, 100 * r.share);
    write(text);
  }

  void finish() {
    if (json_ && !rows_.empty()) write(rows_.dump(1) + "\n");
  }
  bool written() const { return written_; }

 private:
  void write(const std::string& text) { written_ = written_ && put(text); }
  const bool json_;
  const int threads_;
  Json rows_ = Json::array();
  bool written_ = true;
};

}  // namespace

int run_bench_kernels(const BenchArgs& args) {
  if (!args.models.empty()) return usage("--kernels times no --model");
  if (args.format() == TableFormat::kCsv || args.format() == TableFormat::kMarkdown) {
    return usage("--kernels writes text or --json");
  }
  if (args.threads.size() > 1) return usage("--kernels takes one number of --threads");
  const auto isa = pick_isa();
  if (!isa) return fail(Error{ErrorCode::kUnsupported, isa.error().message});
  const auto table = kernels::table_for(*isa);
  if (!table) return fail(table.error());
  engine::KernelOptions options{.table = *table, .quick = args.quick, .cancel = &cancelled};
  auto types = types_of(args.kernel_types, **table);
  if (!types) return fail(types.error());
  options.types = std::move(*types);
  options.threads = args.threads[0] > 0 ? args.threads[0] : usable_cpus();
  Writer writer(args.json, options.threads);
  options.on_bounds = [&](const engine::KernelBounds& bounds) { writer.bounds(bounds, isa_name(*isa)); };
  options.on_row = [&](const engine::KernelRow& row) { writer.row(row); };
  watch_signals();
  Ledger ledger(args.model.memory_bytes ? args.model.memory_bytes : engine::default_memory_limit());
  const Status status = engine::bench_kernels(ledger, options);
  writer.finish();
  if (!writer.written()) return fail_output();
  return status ? kOk : fail(status.error());
}

}  // namespace stoker::cli
