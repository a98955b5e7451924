// What `stoker bench --machine` measured, kept in a file so that other runs can say what share of it they reach.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/bench_disk.h"
#include "engine/bench_machine.h"
#include "engine/plan_rates.h"

namespace stoker::cli {

struct StoredFigures {
  std::string cpu{};
  int usable = 0;           ///< Processors that the process could use.
  int64_t measured_at = 0;  ///< Seconds since 1970.
  bool quick = false;
  engine::MachineFigures figures{};
  std::vector<engine::DiskRead> disk{};
  std::string disk_path{};
  /// How fast products of some rows go through weights of a type: measured where a plan needs it.
  struct Kernel {
    Isa isa{};
    int threads = 0;
    engine::MachineRates::Kernel rate{};
  };
  std::vector<Kernel> kernels{};
};

nlohmann::ordered_json to_json(const StoredFigures& stored);

/// ${STOKER_HOME:-~/.cache/stoker}/machine.json; one entry per processor model and count. Empty: neither is set.
std::string figures_path();
/// Those of this machine; nothing when there are none, or none that can be read.
std::optional<StoredFigures> load_figures();
/// Keeps those of other machines, and disk and kernels of this one where `stored` has none. Quick ones replace no
/// others, but for kernels. kIo, kCorrupt: name the file.
Status save_figures(const StoredFigures& stored);

/// "3 days", "5 hours", "12 min"
std::string age_text(int64_t seconds);

}  // namespace stoker::cli
