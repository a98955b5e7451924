#include "model/experts/file_reader.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace stoker::model {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kTooSmall = 512u << 20;
constexpr auto kPerRound = std::chrono::milliseconds(25);
constexpr uint32_t kRounds = 2;
constexpr std::array<int, 3> kSteps = {2, 4, 8};

/// Reads at random places until the time is over; the bytes read.
uint64_t read_some(ExpertReader& reader, const ExpertIndex& index, uint64_t bytes, std::span<std::byte> window,
                   uint32_t seed, Clock::time_point end) {
  std::mt19937 random(seed);
  uint64_t done = 0;
  while (Clock::now() < end) {
    const ExpertIndex::Layer& layer = index.layers[random() % index.layers.size()];
    const ExpertIndex::Place& place = layer.experts[random() % layer.experts.size()][random() % kProjections];
    const uint64_t here = place.row_bytes * static_cast<uint64_t>(layer.matrices[0]->n_out);
    const uint64_t n = std::min(bytes, std::min(here, place.tensor->bytes - place.begin));
    if (!reader.read(*place.tensor, place.begin, n, window)) return done;  // who needs it will hear why
    done += n;
  }
  return done;
}

}  // namespace

int measure_lanes(ExpertReader& reader, const ExpertIndex& index, uint64_t piece_bytes, std::span<std::byte> windows) {
  if (index.bytes() < kTooSmall) return kSteps[1];
  std::array<double, kSteps.size()> rates{};
  const uint64_t window_bytes = BulkReader::window_bytes(piece_bytes);
  for (uint32_t round = 0; round < kRounds * kSteps.size(); ++round) {
    const size_t step = round % kSteps.size();
    std::atomic<uint64_t> bytes{0};
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(kSteps[step]));
    for (int lane = 0; lane < kSteps[step]; ++lane) {
      threads.emplace_back([&, lane] {
        const auto window = windows.subspan(static_cast<uint64_t>(lane) * window_bytes, window_bytes);
        const uint32_t seed = round * 100 + static_cast<uint32_t>(lane);
        bytes += read_some(reader, index, piece_bytes, window, seed, start + kPerRound);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double rate = static_cast<double>(bytes) / std::chrono::duration<double>(Clock::now() - start).count();
    rates[step] = std::max(rates[step], rate);
  }
  const double best = *std::max_element(rates.begin(), rates.end());
  for (size_t step = kSteps.size(); step-- > 0;) {
    if (rates[step] >= 0.9 * best) return kSteps[step];
  }
  return kSteps[0];
}

}  // namespace stoker::model
