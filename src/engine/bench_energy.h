#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker::engine {

/// The energy counters of the processor packages, where the system has them and lets this process read them.
class EnergyMeter {
 public:
  /// Packages are the folders intel-rapl:N of `root` (AMD's too) that are named package-N: not their parts, not the
  /// whole board, not the second way to the same counter. Not readable if one of them is not: a sum would lack it.
  static EnergyMeter find(const std::string& root = "/sys/class/powercap");

  bool readable() const { return !packages_.empty(); }
  void start();
  /// Joules since `start`; nothing when a counter could not be read, then or now. Counters start over at their maximum,
  /// which they may do once in between.
  std::optional<double> joules() const;

 private:
  struct Package {
    std::string counter;                   ///< Path of energy_uj.
    uint64_t range = 0;                    ///< Where it starts over, in µJ.
    std::optional<uint64_t> started_at{};  ///< In µJ.
  };
  std::vector<Package> packages_;
};

}  // namespace stoker::engine
