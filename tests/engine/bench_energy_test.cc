#include "engine/bench_energy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/bench.h"
#include "tests/gguf/temp_dir.h"
#include "tests/model/golden.h"

namespace stoker::engine {
namespace {

/// A made-up /sys/class/powercap.
class Powercap {
 public:
  void zone(const std::string& id, const std::string& name, uint64_t counter, uint64_t range = 1'000'000'000) {
    std::filesystem::create_directory(dir_ / id);
    write(id, "name", name);
    write(id, "max_energy_range_uj", std::to_string(range));
    set(id, counter);
  }
  void set(const std::string& id, uint64_t counter) { write(id, "energy_uj", std::to_string(counter)); }
  void write(const std::string& id, const std::string& file, const std::string& text) {
    std::ofstream(dir_ / id + "/" + file) << text << "\n";
  }
  /// Not by its mode, which root need not obey.
  void make_unreadable(const std::string& id) {
    std::filesystem::remove(dir_ / id + "/energy_uj");
    std::filesystem::create_directory(dir_ / id + "/energy_uj");
  }
  EnergyMeter meter() const { return EnergyMeter::find(dir_ / ""); }

 private:
  gguf::TempDir dir_;
};

TEST(EnergyMeter, AddsPackagesAndNothingElse) {
  Powercap powercap;
  powercap.zone("intel-rapl:0", "package-0", 1'000'000);
  powercap.zone("intel-rapl:1", "package-1", 500);
  powercap.zone("intel-rapl:2", "psys", 0);              // the whole board
  powercap.zone("intel-rapl:0:0", "core", 0);            // a part of package 0
  powercap.zone("intel-rapl-mmio:0", "package-0", 0);    // package 0 once more
  powercap.zone("intel-rapl", "no zone of its own", 0);  // the parent of all
  EnergyMeter meter = powercap.meter();
  ASSERT_TRUE(meter.readable());
  meter.start();
  for (const char* id : {"intel-rapl:2", "intel-rapl:0:0", "intel-rapl-mmio:0", "intel-rapl"})
    powercap.set(id, 70'000'000);
  EXPECT_EQ(meter.joules(), 0.0);
  powercap.set("intel-rapl:0", 3'500'000);
  powercap.set("intel-rapl:1", 250'500);
  EXPECT_DOUBLE_EQ(meter.joules().value(), 2.75);
  meter.start();
  EXPECT_EQ(meter.joules(), 0.0);
}

TEST(EnergyMeter, CountersStartOverAtTheirRange) {
  Powercap powercap;
  powercap.zone("intel-rapl:0", "package-0", 262'143'000'000, 262'143'328'850);
  powercap.zone("intel-rapl:1", "package-1", 0);
  EnergyMeter meter = powercap.meter();
  meter.start();
  powercap.set("intel-rapl:0", 671'150);
  powercap.set("intel-rapl:1", 1'000'000);
  EXPECT_DOUBLE_EQ(meter.joules().value(), 2);
}

TEST(EnergyMeter, SaysNothingRatherThanTooLittle) {
  Powercap powercap;
  EXPECT_FALSE(EnergyMeter::find("/nowhere").readable());
  EXPECT_FALSE(powercap.meter().readable());
  EXPECT_EQ(powercap.meter().joules(), std::nullopt);

  powercap.zone("intel-rapl:0", "package-0", 5);
  powercap.zone("intel-rapl:1", "package-1", 5);
  EnergyMeter meter = powercap.meter();
  EXPECT_EQ(meter.joules(), std::nullopt) << "before start";
  meter.start();
  powercap.write("intel-rapl:1", "energy_uj", "no number");
  EXPECT_EQ(meter.joules(), std::nullopt) << "unreadable at the end";
  meter.start();
  powercap.set("intel-rapl:1", 6);
  EXPECT_EQ(meter.joules(), std::nullopt) << "unreadable at the start";
  meter.start();
  EXPECT_EQ(meter.joules(), 0.0);
  powercap.make_unreadable("intel-rapl:1");
  EXPECT_EQ(meter.joules(), std::nullopt);
  EXPECT_FALSE(powercap.meter().readable());
}

TEST(EnergyMeter, RowsHaveItWhereItCanBeRead) {
  const BenchCase test{.generates = true, .n = 2};
  auto engine = Engine::open({.path = model::testing::tiny_path("llama"), .memory_bytes = 1u << 30});
  ASSERT_TRUE(engine) << engine.error().message;
  ASSERT_TRUE((*engine)->load(bench_needs({&test, 1}, 64)));
  Powercap powercap;
  powercap.zone("intel-rapl:0", "package-0", 0);
  BenchOptions options{.repetitions = 3, .energy = powercap.meter()};
  uint64_t counter = 0;
  options.on_tokens = [&](uint64_t) { powercap.set("intel-rapl:0", counter += 250'000); };
  const auto row = Bench(**engine, options).run(test);
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_DOUBLE_EQ(row->joules_per_token.value(), 0.25);

  powercap.make_unreadable("intel-rapl:0");
  options.on_tokens = nullptr;
  options.energy = powercap.meter();
  const auto without = Bench(**engine, options).run(test);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(without->joules_per_token, std::nullopt);
}

}  // namespace
}  // namespace stoker::engine
