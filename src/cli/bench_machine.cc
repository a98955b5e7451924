// stoker bench --machine
#include <algorithm>
#include <ctime>

#include "base/cpu.h"
#include "base/memory_limit.h"
#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/bench_args.h"
#include "cli/bench_figures.h"
#include "cli/format.h"

namespace stoker::cli {
namespace {

std::string to_text(const StoredFigures& s) {
  std::string out = str_cat(s.cpu, ", ", s.usable, " processors\n\n", "threads  read GB/s  (median)\n");
  for (const auto& r : s.figures.reads) out += line("%7d  %9.1f  %8.1f\n", r.threads, r.bytes / 1e9, r.median / 1e9);
  out += "\nthreads  isa        int8 GOP/s  f32 GFLOP/s\n";
  for (const auto& p : s.figures.peaks) {
    out += line("%7d  %-9s  %10.0f  %11.0f\n", p.threads, std::string(isa_name(p.isa)).c_str(), p.int8_ops / 1e9,
                p.float_ops / 1e9);
  }
  if (s.disk.empty()) return out;
  out += str_cat("\nrandom reads of ", s.disk_path, "\n     size  depth      MB/s   reads/s\n");
  for (const auto& d : s.disk) {
    out += line("%9s  %5d  %8.1f  %8.0f\n", format_bytes(static_cast<uint64_t>(d.bytes)).c_str(), d.depth,
                d.bytes_per_second / 1e6, d.reads_per_second);
  }
  return out;
}

Result<StoredFigures> measure(const BenchArgs& args) {
  StoredFigures s{.cpu = cpu_model(), .usable = usable_cpus(), .measured_at = std::time(nullptr), .quick = args.quick};
  engine::MachineOptions machine{.threads = args.threads, .quick = args.quick, .cancel = &cancelled};
  if (args.threads == std::vector<int>{0}) machine.threads = engine::thread_counts(s.usable);
  engine::DiskOptions disk{.path = args.disk, .quick = args.quick, .cancel = &cancelled};
  Progress progress(
      {.label = "measuring", .total = machine.steps() + (args.disk.empty() ? 0 : disk.steps()), .is_bytes = false});
  machine.on_step = disk.on_step = [&] { progress.add(1); };
  // The disk first: what is wrong with its path is said at once.
  if (!args.disk.empty()) {
    STOKER_TRY(s.disk, engine::measure_disk(disk));
    s.disk_path = args.disk;
  }
  Ledger ledger(args.model.memory_bytes ? args.model.memory_bytes : engine::default_memory_limit());
  STOKER_TRY(s.figures, engine::measure_machine(ledger, machine));
  return s;
}

}  // namespace

int run_bench_machine(const BenchArgs& args) {
  if (!args.models.empty()) return usage("--machine measures no --model");
  if (args.format() == TableFormat::kCsv || args.format() == TableFormat::kMarkdown) {
    return usage("--machine writes text or --json");
  }
  watch_signals();
  const auto stored = measure(args);
  if (!stored) return fail(stored.error());
  const bool json = args.format() == TableFormat::kJson;
  if (!put(json ? to_json(*stored).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                : to_text(*stored))) {
    return fail_output();
  }
  if (auto status = save_figures(*stored); !status) return fail(status.error());
  return kOk;
}

}  // namespace stoker::cli
