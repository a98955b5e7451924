// What tests of the expert store share: a disk that the test drives, and experts that exist nowhere else.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/mutex.h"
#include "model/experts/store.h"

namespace stoker::model::testing {

/// Ends the test with a message when it does not get done in time, rather than never.
class Watchdog {
 public:
  explicit Watchdog(int seconds);
  ~Watchdog();

 private:
  Mutex mu_;
  CondVar over_;
  bool done_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

/// What a tensor has at `offset`: a function of both, so that misplaced bytes are seen.
std::byte byte_at(const gguf::TensorInfo& tensor, uint64_t offset);

/// Reads that end when the test says so, in any order, well or not. By threads, or with STOKER_FAKE_QUEUE set by a
/// queue: the tests are run both ways. Threads: all methods from any.
class FakeDisk final : public ExpertReader, ReadQueue {
 public:
  struct Read {
    const gguf::TensorInfo* tensor = nullptr;
    uint64_t begin = 0, bytes = 0;
    auto key() const { return std::make_tuple(tensor, begin); }
    bool operator<(const Read& other) const { return key() < other.key(); }
    bool operator==(const Read& other) const { return key() == other.key(); }
  };
  /// Called for each read before it is answered; an Error fails it. From the store's threads, one at a time.
  using Judge = std::function<std::optional<Error>(const Read& read)>;

  Result<std::span<std::byte>> read(const ExpertRead& read) override;
  std::string mode() const override { return "as the test says"; }
  ReadQueue* queue() override { return queued_ ? this : nullptr; }

  /// From now on reads wait for `finish`, or no longer.
  void hold(bool on);
  /// The reads that wait, in the order in which they came, once there are `n`.
  std::vector<Read> held(size_t n);
  void finish(const Read& read, std::optional<Error> error = {});
  /// Finishes reads as they come until `n` have been finished; in the order in which they came.
  std::vector<Read> finish_next(size_t n);
  void judge(Judge judge);
  /// Each read takes at least so long. Before there are any.
  void slow_down(std::chrono::microseconds time) { time_ = time; }
  /// The queue refuses every n-th read. Before there are any.
  void refuse_every(int n) { refuse_every_ = n; }
  /// The queue's `begin` returns so long after the read has begun, which may have ended by then. Before there are any.
  void return_late(std::chrono::microseconds time) { late_ = time; }
  /// All reads that have begun.
  std::vector<Read> log() const;
  uint64_t bytes_read() const;  ///< By those that went well.

 private:
  struct Held {
    Read read;
    bool done = false;  ///< Or it did not have to wait.
    std::optional<Error> error{};
  };
  struct Queued {
    Held held;
    std::span<std::byte> window;
    std::chrono::steady_clock::time_point ready;
  };
  bool begin(int i, const ExpertRead& read) override;
  size_t wait(std::span<Done> done) override;
  size_t collect(std::span<Done> done) REQUIRES(mu_);
  /// A read has begun. It waits for `finish` when it must.
  void admit(Held& held) REQUIRES(mu_);
  const bool queued_ = std::getenv("STOKER_FAKE_QUEUE") != nullptr;
  mutable Mutex mu_;
  CondVar changed_;
  bool hold_ GUARDED_BY(mu_) = false;
  std::deque<Held*> held_ GUARDED_BY(mu_);
  std::map<int, Queued> queue_ GUARDED_BY(mu_);
  std::vector<Read> log_ GUARDED_BY(mu_);
  uint64_t bytes_read_ GUARDED_BY(mu_) = 0;
  Judge judge_ GUARDED_BY(mu_);
  std::chrono::microseconds time_{0}, late_{0};
  int refuse_every_ = 0;
  std::atomic<int> n_asked_{0};
};

/// Layers with experts whose bytes are those of byte_at.
class FakeExperts {
 public:
  struct Shape {
    gguf::TensorType type = gguf::TensorType::kF32, down_type = gguf::TensorType::kF32;
    int64_t ff = 32, dim = 32;
  };
  FakeExperts(int64_t n_experts, int64_t n_used, const std::vector<Shape>& layers);

  const ExpertIndex& index() const { return index_; }
  uint64_t expert_bytes(size_t layer = 0) const { return index_.layers[layer].expert_bytes(); }
  uint64_t file_bytes(size_t layer = 0) const;  ///< Of one expert.
  const std::string& tensor_name(size_t layer, Projection p) const;
  /// The read of a whole matrix that is a single piece.
  FakeDisk::Read read_of(size_t layer, int32_t expert, Projection p) const;
  /// Whether `data` is the matrix in the kernels' layout.
  bool is(const std::byte* data, size_t layer, int32_t expert, Projection p) const;
  /// The expert that a read is of: layer * n_experts + expert.
  int64_t key_of(const FakeDisk::Read& read) const;

 private:
  std::deque<ExpertMatrix> matrices_;
  std::deque<gguf::TensorInfo> tensors_;
  ExpertIndex index_;
};

/// A store over a fake disk.
struct FakeStore {
  Ledger ledger;
  FakeDisk disk;
  FakeExperts experts;
  std::unique_ptr<gguf::File> file;
  std::unique_ptr<ExpertStore> store;
  /// `options.reader` is set here. A lane per read unless it says otherwise.
  FakeStore(FakeExperts experts, ExpertStore::Options options);
  ExpertStore* operator->() const { return store.get(); }
};

inline constexpr Projection kAllProjections[] = {Projection::kGate, Projection::kUp, Projection::kDown};

/// Takes all of a request that can be had, waits for their bytes and compares them. False: something was wrong.
bool take_all(FakeStore& fake, ExpertRequest& request, size_t layer, std::span<const int32_t> wanted);

}  // namespace stoker::model::testing
