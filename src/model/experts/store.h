#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "base/ledger.h"
#include "base/memory_nodes.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/toucher.h"
#include "gguf/file.h"
#include "gguf/tensor_reader.h"
#include "kernels/table.h"
#include "model/experts/index.h"
#include "model/experts/policy.h"
#include "model/experts/read_clock.h"
#include "model/experts/reader.h"
#include "model/experts/slots.h"
#include "model/experts/task_queue.h"

namespace stoker::model {

class ExpertRequest;

/// Keeps the experts in use in memory and reads the others from disk (docs/expert-store.md). An entry is one expert of
/// one layer, or a unit of a layer's other matrices (docs/expert-store.md#layers), in the layout that the kernels read;
/// it comes and goes as a whole, but each matrix is ready by itself. Entries live in slots, which are taken from the
/// system once; a slot is reserved before its bytes are read, so that what is resident and what is on its way never
/// exceed the budget together. Threads: all methods from any thread.
class ExpertStore {
 public:
  struct Options {
    /// For the slots. Less than two experts of a size is legal and slow: two slots of that size then exist beside the
    /// budget, and nothing stays in them.
    uint64_t budget_bytes = 0;
    int lanes = 0;  ///< Reads in flight; 0: as many as the disk rewards, measured when the store is opened.
    EvictionPolicy::Kind policy = EvictionPolicy::kDefault;
    BulkReader::Cache cache = BulkReader::Cache::kSpare;
    /// Workers that all read all slots, which come from their memory nodes in turn; null: from wherever.
    const NodeSplit* split = nullptr;
    ReaderKind reading = ReaderKind::kDefault;
    ExpertReader* reader = nullptr;  ///< In place of one over the file (tests). Must outlive the store.
  };
  static constexpr int kMostLanes = 8;
  static constexpr int kMostPackers = 4;  ///< Threads beside a queue of reads, which pack what it has read.

  /// What `open` charges, by name.
  static std::vector<Ledger::Line> memory(const ExpertIndex& index, uint64_t budget_bytes);
  /// How many slots it would have.
  static int64_t slots_for(const ExpertIndex& index, uint64_t budget_bytes);
  /// Charges the slots to `ledger` and has them touched from now on, as processors have nothing else to do. `file` and
  /// `table` must outlive it. kOutOfMemory: the ledger refuses; the message has the numbers.
  static Result<std::unique_ptr<ExpertStore>> reserve(const gguf::File& file, ExpertIndex index,
                                                      const kernels::Table& table, Ledger& ledger, Options options);
  /// Starts the threads that read; reads no expert yet. Before any request, once.
  void start();
  /// Both.
  static Result<std::unique_ptr<ExpertStore>> open(const gguf::File& file, ExpertIndex index,
                                                   const kernels::Table& table, Ledger& ledger, Options options);
  ~ExpertStore();

  /// requests = hits + joined + foreseen + misses, each counted when it gets its place. Bytes are those of the file.
  struct Stats {
    uint64_t requests = 0;
    uint64_t hits = 0;      ///< It was there.
    uint64_t joined = 0;    ///< It was on its way for somebody else.
    uint64_t foreseen = 0;  ///< It was there or on its way because it had been asked for ahead.
    uint64_t misses = 0;
    uint64_t ahead = 0;  ///< Experts read for requests made ahead; what is not foreseen later was read in vain.
    uint64_t evictions = 0, pass_throughs = 0, cancelled = 0, errors = 0;
    uint64_t bytes_read = 0;
    uint64_t resident_bytes = 0;  ///< Now, in the kernels' layout.
    uint64_t wait_ns = 0;         ///< That callers of `wait` and `take` slept, all together.
    uint64_t in_flight = 0;       ///< Experts being read now: with those resident never more than there are slots.
    uint64_t in_flight_peak = 0;
    uint64_t disk_ns = 0;  ///< With a read under way: bytes_read by it is the rate that was reached.
    uint64_t read_ns = 0;  ///< Of all reads, added up: by disk_ns, how many were under way at once.
    uint64_t pack_ns = 0;  ///< That packing took, all threads together.
  };
  Stats stats() const;

  /// From now on, or no longer, remembers for `replay_reads` what is read: of another expert of the layer, so that no
  /// cache below this system has it from the first time. Of units, which have no others, the same.
  void remember_reads(bool on);
  struct Replay {
    uint64_t bytes = 0, ns = 0;
  };
  /// Reads what is remembered, in the same order, by the same reader and as many at once, packs nothing, and forgets
  /// it: what the disk gives at this time. While there is no request.
  Replay replay_reads();

  /// A call of so many tokens is over: uses age (EvictionPolicy).
  void end_call(int64_t n_tokens);

  const ExpertIndex& index() const { return index_; }
  int64_t n_slots() const;
  /// Reads in flight at most.
  int lanes() const { return depth_; }
  EvictionPolicy::Kind policy() const { return policy_kind_; }
  std::string mode() const { return reader_->mode(); }

 private:
  friend class ExpertRequest;
  struct Class;
  struct Slot;
  struct Piece;
  ExpertStore(const gguf::File& file, ExpertIndex index, const kernels::Table& table, Options options);
  static SlotShares shares_for(const ExpertIndex& index, uint64_t budget_bytes);
  static uint64_t piece_bytes(const ExpertIndex& index);

  int64_t key_of(size_t layer, int32_t expert) const { return static_cast<int64_t>(layer) * index_.n_experts + expert; }
  void lay_out(SlotShares shares, std::byte* slab);

  std::span<std::byte> window(int i) const;
  void lane(int index);
  void packer();
  bool begin_read() REQUIRES(mu_);
  bool pack_read() REQUIRES(mu_);
  bool wait_for_reads() REQUIRES(mu_);
  ExpertRead read_of(const Piece& piece, std::span<std::byte> window) const;
  void read_and_pack(Piece& piece, std::span<std::byte> window);
  void pack(const Piece& piece, std::span<const std::byte> bytes);
  bool next_piece(Piece& piece) REQUIRES(mu_);
  void finish_piece(const Piece& piece) REQUIRES(mu_);
  void finish_reading(int32_t slot) REQUIRES(mu_);

  void place(ExpertRequest& request, size_t i, int32_t slot, uint64_t& counter) REQUIRES(mu_);
  bool lease_present(ExpertRequest& request) REQUIRES(mu_);
  bool place_missing(ExpertRequest& request, size_t most) REQUIRES(mu_);
  void assign(ExpertRequest& request) REQUIRES(mu_);
  void assign_waiting() REQUIRES(mu_);
  bool assign_later() REQUIRES(mu_);
  int32_t take_slot(size_t size_class) REQUIRES(mu_);
  void start_reading(int32_t slot, int64_t key) REQUIRES(mu_);
  void queue_tasks(const ExpertRequest& request, std::span<const int32_t> started) REQUIRES(mu_);
  void drop_lease(int32_t slot) REQUIRES(mu_);
  void empty(int32_t slot) REQUIRES(mu_);
  void note_evictable(int32_t slot) REQUIRES(mu_);

  const std::byte* data(int32_t slot, size_t matrix) const;
  bool ready(int32_t slot, size_t matrix) const;
  bool all_ready(int32_t slot) const;
  const std::byte* wait(int32_t slot, size_t matrix);
  Error error(int32_t slot) const;

  const ExpertIndex index_;
  const kernels::Table& table_;
  std::unique_ptr<ExpertReader> own_reader_;
  ExpertReader* reader_;
  EvictionPolicy::Kind policy_kind_;
  const uint64_t piece_bytes_;
  const int wanted_lanes_;
  int depth_ = 0;  // Reads in flight.
  Buffer slab_, windows_;
  Toucher toucher_;  // Of the slab: goes before it.
  std::vector<size_t> class_of_layer_;
  std::vector<Slot> slots_;
  std::vector<std::thread> lanes_;  // Or packers, where there is a queue.
  std::atomic<uint64_t> wait_ns_{0}, pack_ns_{0};
  mutable ReadClock clock_;

  mutable Mutex mu_;
  CondVar work_, assigned_;
  std::vector<Class> classes_ GUARDED_BY(mu_);
  std::vector<int32_t> slot_of_ GUARDED_BY(mu_);  // By key; -1: it has none.
  EvictionPolicy policy_ GUARDED_BY(mu_);
  TaskQueue wanted_ GUARDED_BY(mu_), ahead_ GUARDED_BY(mu_);  // All that is wanted comes before what is read ahead.
  // Where there is a queue: what is read into which window, those that are free, and those that wait for packing.
  std::vector<Piece> pieces_ GUARDED_BY(mu_);
  std::vector<int> free_windows_ GUARDED_BY(mu_);
  std::deque<ReadQueue::Done> done_ GUARDED_BY(mu_);
  int n_beginning_ GUARDED_BY(mu_) = 0;
  int n_under_way_ GUARDED_BY(mu_) = 0;          // Below 0 while one has ended whose beginner is not back yet.
  bool somebody_waits_ GUARDED_BY(mu_) = false;  // For the queue.
  std::optional<std::vector<ExpertRead>> remembered_ GUARDED_BY(mu_);
  std::vector<ExpertRequest*> waiting_ GUARDED_BY(mu_);  // First come, first served.
  std::vector<ExpertRequest*> later_ GUARDED_BY(mu_);    // Of Order::kLater, not all placed: the same.
  size_t n_requests_ GUARDED_BY(mu_) = 0, n_reading_ GUARDED_BY(mu_) = 0;
  Stats stats_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
};

/// Experts of one layer that somebody wants: those that are there are leased at once, the others are read as places
/// become free, in the order in which they were asked for. A leased expert's bytes stay put. Going out of scope gives
/// back all leases and cancels what nobody else wants.
/// Threads: `wait` and `data` of experts that were taken from any thread, all else from one at a time. Allocates only
/// when it is made.
class ExpertRequest {
 public:
  explicit ExpertRequest(ExpertStore& store);
  ~ExpertRequest();
  ExpertRequest(const ExpertRequest&) = delete;
  ExpertRequest& operator=(const ExpertRequest&) = delete;

  enum class Order {
    kByExpert,      ///< All of an expert, then of the next: for those who take one after the other.
    kByProjection,  ///< All but the last matrix of each, then these downs: for those who take all at once.
    kAhead,         ///< As kByExpert, for experts that are not wanted yet: this is no use of them.
    kLater,         ///< As kAhead; but what is not there gets its place only once nothing else is left to read.
  };
  /// Asks for `experts`, all different, of entry `layer` of ExpertIndex::layers; `uses` says how many tokens want each
  /// (empty: one). What an earlier `start` asked for must have been given back. A request made ahead is finished once
  /// another has asked for those that are wanted indeed: reads of the others that have not begun are cancelled.
  void start(size_t layer, std::span<const int32_t> experts, std::span<const int32_t> uses, Order order);

  enum class Take {
    kReady,  ///< One whose bytes are all there.
    kAny,    ///< Or one that has a place, ready ones first.
    kWait,   ///< Or else the first that gets a place. Only for callers that hold no lease: who waits for a place while
             ///< keeping others from theirs might wait for ever.
  };
  /// An index into `experts` that was not taken yet; -1: there is none. Its lease is the caller's until `release`.
  int32_t take(Take how);
  /// Whether all have been taken.
  bool all_taken() const { return n_taken_ == static_cast<int64_t>(keys_.size()); }
  /// Whether all have a place now.
  bool all_placed() const;

  /// Of an expert that was taken: its matrix, by number in the index, once `wait` has returned.
  const std::byte* data(int32_t i, size_t matrix) const { return store_.data(slots_[static_cast<size_t>(i)], matrix); }
  /// Returns when the matrix is there; null when it could not be read, and `error` then says why.
  const std::byte* wait(int32_t i, size_t matrix) { return store_.wait(slots_[static_cast<size_t>(i)], matrix); }
  /// kIo, kCorrupt: names the tensor. Nothing of the expert is kept; asking for it again reads again.
  Error error(int32_t i) const { return store_.error(slots_[static_cast<size_t>(i)]); }
  /// Whether a part of it could not be read, so far.
  bool failed(int32_t i) const;
  void release(int32_t i);
  /// Gives back everything.
  void finish();

 private:
  friend class ExpertStore;
  enum class State : uint8_t { kWanted, kPlaced, kTaken, kReleased };
  bool placed() const;
  bool guessed() const { return order_ == Order::kAhead || order_ == Order::kLater; }
  ExpertStore& store_;
  size_t layer_ = 0;
  Order order_ = Order::kByExpert;
  // Guarded by the store's mutex, but for taken ones.
  std::vector<int64_t> keys_;
  std::vector<int32_t> slots_;
  std::vector<State> states_;
  std::vector<int32_t> started_;  // Slots whose reading has just begun.
  int64_t n_taken_ = 0;
  bool waiting_ = false;
};

}  // namespace stoker::model
