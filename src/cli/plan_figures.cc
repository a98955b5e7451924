#include "cli/plan_figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/log.h"
#include "base/pool.h"
#include "cli/bench_figures.h"
#include "cli/common.h"
#include "engine/bench_kernels.h"
#include "engine/plan_report.h"

namespace stoker::cli {
namespace {

using Source = PlanFigures::Source;

constexpr int64_t kPage = 4096;
constexpr int64_t kPiece = 1 << 20;         // of the store's reads
constexpr uint64_t kSmallFile = 64u << 20;  // tells nothing about its disk
constexpr int64_t kFreshSeconds = 600;
constexpr double kSameMemory = 0.15;  // as far apart as its rate of two measurements in one minute

/// One matrix of what may be streamed, an expert's or a layer's: the store reads it one piece after the other.
int64_t matrix_bytes(const model::Model& model) {
  model::Residency all{};
  all.units.assign(model.units().size(), true);
  const model::ExpertIndex index = model.expert_index().layers.empty() ? model.unit_index(all) : model.expert_index();
  const model::ExpertIndex::Layer& layer = index.layers[0];
  return static_cast<int64_t>(layer.experts[0][0].row_bytes) * layer.matrices[0]->n_out;
}

class Finder {
 public:
  Finder(const engine::Engine& engine, const PlanFigureOptions& options)
      : engine_(engine),
        options_(options),
        isa_(engine.model().plan().table->isa),
        threads_(engine.options().threads > 0 ? engine.options().threads : usable_cpus()) {
    if (auto kept = load_figures()) {
      stored_ = std::move(*kept);
    } else {
      stored_ = nothing_stored();
    }
  }

  Result<PlanFigures> operator()() {
    out_.rates = engine::MachineRates::guess(isa_, threads_);
    STOKER_TRY_STATUS(check_kept());
    STOKER_TRY_STATUS(find_memory());
    STOKER_TRY_STATUS(find_kernels());
    STOKER_TRY_STATUS(find_disk());
    if (changed_ && !drifted_) {
      if (auto status = save_figures(stored_); !status) log_warn("measured, not kept: ", status.error().message);
    }
    return std::move(out_);
  }

 private:
  static StoredFigures nothing_stored() {
    return {.cpu = cpu_model(), .usable = usable_cpus(), .measured_at = std::time(nullptr), .quick = true};
  }

  /// What was kept some time ago holds as long as memory is as fast as it was then: who shares the machine changes that
  /// from hour to hour, and the clock with it. Otherwise all is measured anew, for this time.
  Status check_kept() {
    const auto before = std::find_if(stored_.figures.reads.begin(), stored_.figures.reads.end(),
                                     [&](const auto& read) { return read.threads == threads_; });
    const bool fresh = std::time(nullptr) - stored_.measured_at < kFreshSeconds;
    if (!options_.measure || fresh || before == stored_.figures.reads.end()) return Ok{};
    Ledger ledger(engine::default_memory_limit());
    const auto now = engine::measure_machine(
        ledger, {.threads = {threads_}, .read_seconds = 0.2, .peaks = false, .cancel = &cancelled});
    if (!now) return unless_cancelled(now.error());
    drifted_ = std::abs(now->reads[0].median / before->median - 1) > kSameMemory;
    if (!drifted_) return Ok{};
    const auto disk = std::move(stored_.disk);
    stored_ = nothing_stored();
    stored_.disk = disk;
    return Ok{};
  }

  const engine::MachineFigures::Peak* peak() const {
    for (const auto& p : stored_.figures.peaks) {
      if (p.isa == isa_ && p.threads == threads_) return &p;
    }
    return nullptr;
  }

  /// An error that is no reason to go without a plan.
  static Status unless_cancelled(const Error& error) {
    if (error.code == ErrorCode::kCancelled) return error;
    log_warn("not measured: ", error.message);
    return Ok{};
  }

  Status find_memory() {
    out_.memory = Source::kKept;
    if (stored_.figures.read_rate(threads_) == 0 || !peak()) {
      out_.memory = Source::kGuess;
      if (!options_.measure) return Ok{};
      say("memory and arithmetic");
      Ledger ledger(engine::default_memory_limit());
      const auto figures =
          engine::measure_machine(ledger, {.threads = {threads_}, .read_seconds = 0.7, .cancel = &cancelled});
      if (!figures) return unless_cancelled(figures.error());
      auto& all = stored_.figures;
      all.reads.insert(all.reads.end(), figures->reads.begin(), figures->reads.end());
      all.peaks.insert(all.peaks.end(), figures->peaks.begin(), figures->peaks.end());
      out_.memory = Source::kNow;
      changed_ = true;
    }
    const auto take = [](double& to, double from) { to = from > 0 ? from : to; };
    for (const auto& read : stored_.figures.reads) {
      if (read.threads != threads_) continue;
      take(out_.rates.read, read.bytes);
      take(out_.rates.steady_read, read.median);
    }
    take(out_.rates.int8_ops, peak()->int8_ops);
    take(out_.rates.float_ops, peak()->float_ops);
    return Ok{};
  }

  bool has_kernel(gguf::TensorType type) const {
    return std::any_of(stored_.kernels.begin(), stored_.kernels.end(), [&](const StoredFigures::Kernel& k) {
      return k.isa == isa_ && k.threads == threads_ && k.rate.type == type;
    });
  }

  Status find_kernels() {
    std::vector<gguf::TensorType> missing = engine::plan_types(engine_);
    std::erase_if(missing, [&](auto type) { return has_kernel(type); });
    out_.kernels = missing.empty() ? Source::kKept : Source::kGuess;
    if (!missing.empty() && options_.measure) {
      say("matrix products");
      Ledger ledger(engine::default_memory_limit());
      const auto keep = [&](const engine::KernelRow& row) {
        stored_.kernels.push_back({isa_, threads_, {row.type, row.rows, row.weight_bytes}});
      };
      const Status status = engine::bench_kernels(ledger, {.table = engine_.model().plan().table,
                                                           .types = missing,
                                                           .threads = threads_,
                                                           .cancel = &cancelled,
                                                           .on_row = keep});
      if (!status) return unless_cancelled(status.error());
      out_.kernels = Source::kNow;
      changed_ = true;
    }
    for (const StoredFigures::Kernel& k : stored_.kernels) {
      if (k.isa == isa_ && k.threads == threads_) out_.rates.kernels.push_back(k.rate);
    }
    return Ok{};
  }

  /// A disk is as fast as what lies on it and who else uses it: the file's own is measured every time, and not kept.
  Status find_disk() {
    const int64_t bytes = matrix_bytes(engine_.model());
    std::error_code none;
    const bool there = !options_.file.empty() && std::filesystem::file_size(options_.file, none) >= kSmallFile && !none;
    if (options_.measure && there) {
      say("the disk");
      const auto reads = engine::measure_disk({.path = options_.file,
                                               .sizes = {std::clamp(bytes / kPage * kPage, kPage, kPiece)},
                                               .depths = {4, 8},
                                               .milliseconds = 600,
                                               .run_bytes = bytes,
                                               .cancel = &cancelled});
      if (reads) {
        take_best(*reads, Source::kNow);
        return Ok{};
      }
      STOKER_TRY_STATUS(unless_cancelled(reads.error()));
    }
    // The kept sizes are powers of four: the nearest.
    const auto distance = [&](const engine::DiskRead& read) {
      return std::abs(std::log2(static_cast<double>(read.bytes) / static_cast<double>(bytes)));
    };
    std::vector<engine::DiskRead> nearest;
    for (const engine::DiskRead& read : stored_.disk) {
      if (!nearest.empty() && distance(read) < distance(nearest[0])) nearest.clear();
      if (nearest.empty() || distance(read) == distance(nearest[0])) nearest.push_back(read);
    }
    if (!nearest.empty()) take_best(nearest, Source::kKept);
    return Ok{};
  }

  void take_best(const std::vector<engine::DiskRead>& reads, Source source) {
    double best = 0;
    for (const engine::DiskRead& read : reads) best = std::max(best, read.bytes_per_second);
    if (best <= 0) return;
    out_.rates.disk = best;
    out_.disk = source;
  }

  static void say(const char* what) { std::fprintf(stderr, "stoker: measuring %s for a second\n", what); }

  const engine::Engine& engine_;
  const PlanFigureOptions& options_;
  const Isa isa_;
  const int threads_;
  StoredFigures stored_;
  PlanFigures out_;
  bool changed_ = false;
  bool drifted_ = false;  ///< What was kept is not what this machine does now.
};

}  // namespace

const char* source_name(PlanFigures::Source source) {
  return source == Source::kNow ? "measured now" : source == Source::kKept ? "measured before" : "a guess";
}

Result<PlanFigures> plan_figures(const engine::Engine& engine, const PlanFigureOptions& options) {
  return Finder(engine, options)();
}

}  // namespace stoker::cli
