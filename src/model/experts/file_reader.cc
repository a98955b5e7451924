#include "model/experts/file_reader.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/seconds.h"
#include "base/str_cat.h"
#include "model/experts/ring.h"

namespace stoker::model {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kTooSmall = 512u << 20;
constexpr auto kPerRound = std::chrono::milliseconds(25);
constexpr uint32_t kRounds = 3;
// Two would leave the disk nothing to do while both pack, whatever they read without packing.
constexpr std::array<int, 2> kSteps = {4, 8};
// Of the best rate, for more reads at once. Here nothing but the reads is at work; beside products a thread whose read
// has ended waits for a processor, and so many more must be under way (docs/expert-store.md#lanes).
constexpr double kEnough = 0.75;

/// A thread for each read.
uint64_t read_by_threads(ExpertReader& reader, std::span<const std::span<std::byte>> windows, const NextRead& next) {
  std::atomic<uint64_t> bytes{0};
  Mutex mu;  // of `next`
  std::vector<std::thread> threads;
  threads.reserve(windows.size());
  for (const std::span<std::byte> window : windows) {
    threads.emplace_back([&, window] {
      for (;;) {
        ExpertRead read;
        {
          const MutexLock lock(mu);
          if (!next(read)) return;
        }
        read.window = window;
        if (!reader.read(read)) return;  // who needs it will hear why
        bytes += read.bytes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return bytes;
}

uint64_t read_by_queue(ExpertReader& reader, std::span<const std::span<std::byte>> windows, const NextRead& next) {
  ReadQueue& queue = *reader.queue();
  std::vector<int> free;
  for (size_t i = 0; i < windows.size(); ++i) free.push_back(static_cast<int>(i));
  std::vector<ReadQueue::Done> done(windows.size());
  uint64_t bytes = 0;
  for (bool more = true;;) {
    ExpertRead read;
    while (more && !free.empty() && (more = next(read))) {
      const int i = free.back();
      read.window = windows[static_cast<size_t>(i)];
      if (queue.begin(i, read)) {
        free.pop_back();
      } else if ((more = static_cast<bool>(reader.read(read)))) {
        bytes += read.bytes;
      }
    }
    if (free.size() == windows.size()) return bytes;
    const size_t n = queue.wait(done);
    for (size_t k = 0; k < n; ++k) {
      free.push_back(done[k].i);
      bytes += done[k].bytes.size();
      more = more && !done[k].bytes.empty();
    }
  }
}

/// Random places of the experts until the time is over.
NextRead random_reads(const ExpertIndex& index, uint64_t bytes, uint32_t seed, Clock::time_point end) {
  return [&index, bytes, end, random = std::mt19937(seed)](ExpertRead& read) mutable {
    const ExpertIndex::Layer& layer = index.layers[random() % index.layers.size()];
    const size_t m = random() % layer.matrices.size();
    const ExpertIndex::Place& place = layer.experts[random() % layer.experts.size()][m];
    const uint64_t here = place.row_bytes * static_cast<uint64_t>(layer.matrices[m]->n_out);
    read = {.tensor = place.tensor,
            .begin = place.begin,
            .bytes = std::min(bytes, std::min(here, place.tensor->bytes - place.begin))};
    return Clock::now() < end;
  };
}

}  // namespace

FileReader::FileReader(const gguf::File& file, BulkReader::Cache cache, ReaderKind kind, int depth)
    : reader_(file, cache) {
  if (kind != ReaderKind::kRing) return;
  auto ring = open_ring(reader_, depth);
  if (ring) {
    ring_ = std::move(*ring);
  } else {
    why_no_ring_ = std::move(ring).error().message;
  }
}

std::string FileReader::mode() const {
  const std::string how = reader_.direct() ? "direct" : "through the page cache";
  if (ring_) return str_cat(how, ", by io_uring");
  return why_no_ring_.empty() ? how : str_cat(how, ", by threads: ", why_no_ring_);
}

uint64_t read_all(ExpertReader& reader, int depth, std::span<std::byte> windows, uint64_t window_bytes,
                  const NextRead& next) {
  std::vector<std::span<std::byte>> each;
  each.reserve(static_cast<size_t>(depth));
  for (int i = 0; i < depth; ++i) {
    each.push_back(windows.subspan(static_cast<uint64_t>(i) * window_bytes, window_bytes));
  }
  return reader.queue() ? read_by_queue(reader, each, next) : read_by_threads(reader, each, next);
}

int measure_lanes(ExpertReader& reader, const ExpertIndex& index, uint64_t piece_bytes, std::span<std::byte> windows) {
  if (index.bytes() < kTooSmall) return kSteps[0];
  std::array<double, kSteps.size()> rates{};
  for (uint32_t round = 0; round < kRounds * kSteps.size(); ++round) {
    const size_t step = round % kSteps.size();
    const auto start = Clock::now();
    const uint64_t bytes = read_all(reader, kSteps[step], windows, BulkReader::window_bytes(piece_bytes),
                                    random_reads(index, piece_bytes, round, start + kPerRound));
    const double rate = static_cast<double>(bytes) / seconds_since(start);
    rates[step] = std::max(rates[step], rate);
  }
  const double best = *std::max_element(rates.begin(), rates.end());
  for (size_t step = kSteps.size(); step-- > 0;) {
    if (rates[step] >= kEnough * best) return kSteps[step];
  }
  return kSteps[0];
}

}  // namespace stoker::model
