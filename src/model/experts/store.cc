#include "model/experts/store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/gate.h"
#include "base/pool.h"
#include "model/experts/file_reader.h"
#include "model/experts/store_parts.h"

namespace stoker::model {
namespace {

constexpr uint64_t kWorthTouching = 64u << 20;
constexpr int kMostTouching = 8;  // As many as saturate the memory of a large machine.
// Large enough for a disk to be at its best, small enough that a matrix comes through several lanes at once.
constexpr uint64_t kPieceBytes = (1u << 20) - BulkReader::kAlign;

}  // namespace

SlotShares ExpertStore::shares_for(const ExpertIndex& index, uint64_t budget_bytes) {
  std::vector<uint64_t> expert_bytes;
  for (const ExpertIndex::Layer& layer : index.layers) expert_bytes.push_back(layer.expert_bytes());
  if (index.n_ring > 0) return ring_slots(expert_bytes, index.n_ring);
  return share_slots(expert_bytes, index.n_experts, budget_bytes);
}

uint64_t ExpertStore::piece_bytes(const ExpertIndex& index) {
  uint64_t bytes = kPieceBytes;
  for (const ExpertIndex::Layer& layer : index.layers) {
    for (const ExpertIndex::Place& place : layer.experts[0]) bytes = std::max(bytes, 16 * place.row_bytes);
  }
  return bytes;
}

std::vector<Ledger::Line> ExpertStore::memory(const ExpertIndex& index, uint64_t budget_bytes) {
  uint64_t slab = 0;
  for (const SlotClass& c : shares_for(index, budget_bytes).classes)
    slab += c.slot_bytes * static_cast<uint64_t>(c.n_slots);
  const bool ring = index.n_ring > 0;
  return {{ring ? "streamed layers" : "expert cache", slab, 0},
          {ring ? "layer reads" : "expert reads",
           BulkReader::window_bytes(piece_bytes(index)) * static_cast<uint64_t>(kMostLanes), 0}};
}

int64_t ExpertStore::slots_for(const ExpertIndex& index, uint64_t budget_bytes) {
  int64_t n = 0;
  for (const SlotClass& c : shares_for(index, budget_bytes).classes) n += c.n_slots;
  return n;
}

ExpertStore::ExpertStore(const gguf::File& file, ExpertIndex index, const kernels::Table& table, Options options)
    : index_(std::move(index)),
      table_(table),
      own_reader_(options.reader ? nullptr
                                 : std::make_unique<FileReader>(file, options.cache, options.reading, kMostLanes)),
      reader_(options.reader ? options.reader : own_reader_.get()),
      policy_kind_(options.policy),
      piece_bytes_(piece_bytes(index_)),
      wanted_lanes_(options.lanes > 0 ? std::min(options.lanes, kMostLanes) : 0),
      slot_of_(index_.layers.size() * static_cast<size_t>(index_.n_experts), -1),
      policy_(policy_kind_, static_cast<int64_t>(slot_of_.size()), EvictionPolicy::kHalfLife,
              {.n_experts = index_.n_experts, .n_used = index_.n_used}) {}

Result<std::unique_ptr<ExpertStore>> ExpertStore::reserve(const gguf::File& file, ExpertIndex index,
                                                          const kernels::Table& table, Ledger& ledger,
                                                          Options options) {
  const std::vector<Ledger::Line> lines = memory(index, options.budget_bytes);
  auto store = std::unique_ptr<ExpertStore>(new ExpertStore(file, std::move(index), table, options));
  ExpertStore& s = *store;
  STOKER_TRY(s.slab_, Buffer::allocate(ledger, lines[0].name, lines[0].bytes));
  STOKER_TRY(s.windows_, Buffer::allocate(ledger, lines[1].name, lines[1].bytes));
  if (options.split) interleave(s.slab_.bytes(), options.split->ids());
  s.lay_out(shares_for(s.index_, options.budget_bytes), s.slab_.data());
  if (lines[0].bytes >= kWorthTouching) s.toucher_.start(s.slab_.bytes(), std::min(usable_cpus(), kMostTouching));
  return store;
}

Result<std::unique_ptr<ExpertStore>> ExpertStore::open(const gguf::File& file, ExpertIndex index,
                                                       const kernels::Table& table, Ledger& ledger, Options options) {
  STOKER_TRY(std::unique_ptr<ExpertStore> store, reserve(file, std::move(index), table, ledger, options));
  store->start();
  return store;
}

ExpertStore::~ExpertStore() {
  {
    const MutexLock lock(mu_);
    STOKER_CHECK(n_requests_ == 0);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : lanes_) thread.join();
}

void ExpertStore::lay_out(SlotShares shares, std::byte* slab) {
  const MutexLock lock(mu_);
  class_of_layer_ = std::move(shares.class_of_layer);
  for (const SlotClass& share : shares.classes) {
    const size_t size_class = classes_.size();
    Class& c = classes_.emplace_back(Class{share, static_cast<int32_t>(slots_.size()), {}, {}});
    c.evictable.assign(static_cast<size_t>(c.n_slots), -1);
    for (int64_t i = 0; i < c.n_slots; ++i) {
      Slot& slot = slots_.emplace_back();
      slot.data = std::exchange(slab, slab + c.slot_bytes);
      slot.size_class = size_class;
      c.free.push_back(c.first + static_cast<int32_t>(c.n_slots - 1 - i));
    }
  }
  size_t most = 0;
  for (const ExpertIndex::Layer& layer : index_.layers) most = std::max(most, layer.matrices.size());
  STOKER_CHECK(most <= kMostMatrices);
  for (TaskQueue* tasks : {&wanted_, &ahead_}) tasks->resize(slots_.size() * most);
}

int64_t ExpertStore::n_slots() const { return static_cast<int64_t>(slots_.size()); }

ExpertStore::Stats ExpertStore::stats() const {
  const MutexLock lock(mu_);
  Stats stats = stats_;
  stats.wait_ns = wait_ns_.load(std::memory_order_relaxed);
  stats.in_flight = n_reading_;
  const ReadClock::Times times = clock_.times();
  stats.disk_ns = times.busy_ns, stats.read_ns = times.sum_ns;
  stats.pack_ns = pack_ns_.load(std::memory_order_relaxed);
  return stats;
}

void ExpertStore::end_call(int64_t n_tokens) {
  const MutexLock lock(mu_);
  policy_.end_call(n_tokens);
}

// Reading

void ExpertStore::finish_piece(const Piece& piece) {
  Slot& slot = slots_[static_cast<size_t>(piece.slot)];
  stats_.bytes_read += piece.bytes;
  if (piece.error) {
    ++stats_.errors;
    if (!slot.error) slot.error = piece.error;
    slot.failed.store(true, std::memory_order_relaxed);
  }
  auto& pending = slot.pending[piece.m];
  if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) wake_all(pending);
  if (--slot.left == 0) finish_reading(piece.slot);
}

void ExpertStore::finish_reading(int32_t index) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  --n_reading_;
  if (slot.failed.load(std::memory_order_relaxed) || slot.given_up) {
    slot_of_[static_cast<size_t>(slot.key)] = -1;  // whoever asks next reads again
    if (slot.leases == 0) empty(index);
    return;
  }
  stats_.resident_bytes += classes_[slot.size_class].slot_bytes;
}

// Places

/// A slot without an entry, evicting one where that is needed; -1: all are leased or being read.
int32_t ExpertStore::take_slot(size_t size_class) {
  Class& c = classes_[size_class];
  if (!c.free.empty()) {
    const int32_t slot = c.free.back();
    c.free.pop_back();
    return slot;
  }
  const int64_t victim = policy_.victim(c.evictable);
  if (victim < 0) return -1;
  const int32_t slot = c.first + static_cast<int32_t>(victim);
  slot_of_[static_cast<size_t>(slots_[static_cast<size_t>(slot)].key)] = -1;
  c.evictable[static_cast<size_t>(victim)] = -1;
  stats_.resident_bytes -= c.slot_bytes;
  ++stats_.evictions;
  return slot;
}

void ExpertStore::start_reading(int32_t index, int64_t key) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  slot.key = static_cast<int32_t>(key);
  slot.leases = 1;
  slot.given_up = false;
  slot.failed = false;
  slot.error.reset();
  slot.left = 0;
  slot_of_[static_cast<size_t>(key)] = index;
  const ExpertIndex::Layer& layer = index_.layers[static_cast<size_t>(key / index_.n_experts)];
  const auto& places = layer.experts[static_cast<size_t>(key % index_.n_experts)];
  uint64_t offset = 0;
  for (size_t m = 0; m < places.size(); ++m) {
    const Matrix& w = *layer.matrices[m];
    const int64_t each = groups_of(w, places[m], piece_bytes_);
    const auto n = static_cast<int32_t>((w.n_groups() + each - 1) / each);
    slot.pending[m].store(static_cast<uint32_t>(n), std::memory_order_relaxed);
    slot.left += n;
    slot.offset[m] = offset;
    offset += static_cast<uint64_t>(w.bytes());
  }
  stats_.in_flight_peak = std::max<uint64_t>(stats_.in_flight_peak, ++n_reading_);
}

void ExpertStore::queue_tasks(const ExpertRequest& request, std::span<const int32_t> started) {
  using Order = ExpertRequest::Order;
  TaskQueue& tasks = request.guessed() ? ahead_ : wanted_;
  const size_t n = index_.layers[request.layer_].matrices.size();
  const size_t first = request.order_ == Order::kByProjection ? n - 1 : n;
  const auto add = [&](int32_t slot, size_t begin, size_t end) {
    for (size_t m = begin; m < end; ++m) tasks.push({.slot = slot, .m = m});
  };
  for (int32_t slot : started) add(slot, 0, first);
  for (int32_t slot : started) add(slot, first, n);
  if (!started.empty()) work_.notify_all();
}

void ExpertStore::place(ExpertRequest& request, size_t i, int32_t slot, uint64_t& counter) {
  if (!request.guessed()) ++counter, ++stats_.requests;
  request.slots_[i] = slot;
  request.states_[i] = ExpertRequest::State::kPlaced;
}

/// Leases what has a place already. False: nothing has that was not leased before.
bool ExpertStore::lease_present(ExpertRequest& request) {
  bool any = false;
  for (size_t i = 0; i < request.keys_.size(); ++i) {
    const int32_t slot = slot_of_[static_cast<size_t>(request.keys_[i])];
    if (request.states_[i] != ExpertRequest::State::kWanted || slot < 0) continue;
    Slot& s = slots_[static_cast<size_t>(slot)];
    if (s.given_up) continue;  // until it is gone
    const bool foreseen = !request.guessed() && std::exchange(s.ahead, false);
    if (foreseen && s.left > 0) ahead_.move(slot, wanted_);
    place(request, i, slot, foreseen ? stats_.foreseen : s.left > 0 ? stats_.joined : stats_.hits);
    ++s.leases;
    note_evictable(slot);
    any = true;
  }
  return any;
}

/// Begins to read what has no place, as far as there is room and at most so many. False: nothing.
bool ExpertStore::place_missing(ExpertRequest& request, size_t most) {
  request.started_.clear();
  for (size_t i = 0; i < request.keys_.size() && request.started_.size() < most; ++i) {
    if (request.states_[i] != ExpertRequest::State::kWanted) continue;
    if (slot_of_[static_cast<size_t>(request.keys_[i])] >= 0) continue;
    const int32_t slot = take_slot(class_of_layer_[request.layer_]);
    if (slot < 0) break;
    place(request, i, slot, stats_.misses);
    start_reading(slot, request.keys_[i]);
    slots_[static_cast<size_t>(slot)].ahead = request.guessed();
    stats_.ahead += request.guessed();
    request.started_.push_back(slot);
  }
  queue_tasks(request, request.started_);
  return !request.started_.empty();
}

void ExpertStore::assign(ExpertRequest& request) {
  // What has a place already comes first: leased, it is not what makes room for the others.
  bool any = lease_present(request);
  if (request.order_ != ExpertRequest::Order::kLater) any = place_missing(request, request.keys_.size()) || any;
  if (any) assigned_.notify_all();
  request.waiting_ = !request.placed();
}

/// There is nothing to read: one of those that may be wanted later gets its place. False: there is none, or no room.
bool ExpertStore::assign_later() {
  while (!later_.empty() && waiting_.empty()) {
    ExpertRequest& request = *later_.front();
    lease_present(request);
    const bool begun = place_missing(request, 1);
    request.waiting_ = !request.placed();
    if (!request.waiting_) later_.erase(later_.begin());
    if (begun || request.waiting_) return begun;
  }
  return false;
}

/// After a place became free. What was asked for ahead comes after all that is wanted now.
void ExpertStore::assign_waiting() {
  for (const bool ahead : {false, true}) {
    for (ExpertRequest* request : waiting_) {
      if (request->guessed() == ahead) assign(*request);
    }
  }
  std::erase_if(waiting_, [](const ExpertRequest* request) { return !request->waiting_; });
}

void ExpertStore::note_evictable(int32_t index) {
  const Slot& slot = slots_[static_cast<size_t>(index)];
  Class& c = classes_[slot.size_class];
  const bool evictable = slot.key >= 0 && slot.leases == 0 && slot.left == 0;
  c.evictable[static_cast<size_t>(index - c.first)] = evictable ? slot.key : -1;
}

void ExpertStore::drop_lease(int32_t index) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  STOKER_CHECK(slot.leases > 0);
  if (--slot.leases > 0) return;
  if (slot.left > 0) {
    slot.given_up = true;
    ahead_.move(index, wanted_);  // where it goes away soon: nothing of it will be read
    ++stats_.cancelled;
    work_.notify_all();
  } else if (slot.failed.load(std::memory_order_relaxed)) {
    empty(index);
  } else if (!classes_[slot.size_class].keeps) {
    ++stats_.pass_throughs;
    stats_.resident_bytes -= classes_[slot.size_class].slot_bytes;
    slot_of_[static_cast<size_t>(slot.key)] = -1;
    empty(index);
  } else {
    note_evictable(index);
    assign_waiting();
  }
}

void ExpertStore::empty(int32_t index) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  slot.key = -1;
  slot.given_up = false;
  note_evictable(index);
  classes_[slot.size_class].free.push_back(index);
  assign_waiting();
}

// Leases

const std::byte* ExpertStore::data(int32_t index, size_t matrix) const {
  const Slot& slot = slots_[static_cast<size_t>(index)];
  return slot.data + slot.offset[matrix];
}

bool ExpertStore::ready(int32_t index, size_t matrix) const {
  return slots_[static_cast<size_t>(index)].pending[matrix].load(std::memory_order_acquire) == 0;
}

bool ExpertStore::all_ready(int32_t slot) const {
  for (size_t m = 0; m < kMostMatrices; ++m) {
    if (!ready(slot, m)) return false;  // nothing is ever pending of those that an entry does not have
  }
  return true;
}

const std::byte* ExpertStore::wait(int32_t index, size_t matrix) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  auto& pending = slot.pending[matrix];
  uint32_t n = pending.load(std::memory_order_acquire);
  if (n > 0) {
    const uint64_t start = now_ns();
    for (; n > 0; n = pending.load(std::memory_order_acquire)) sleep_while(pending, n);
    wait_ns_.fetch_add(now_ns() - start, std::memory_order_relaxed);
  }
  return slot.failed.load(std::memory_order_relaxed) ? nullptr : data(index, matrix);
}

Error ExpertStore::error(int32_t index) const {
  const MutexLock lock(mu_);
  const Slot& slot = slots_[static_cast<size_t>(index)];
  return slot.error ? *slot.error : Error{ErrorCode::kIo, "weights could not be read"};
}

ExpertRequest::ExpertRequest(ExpertStore& store) : store_(store) {
  const auto n = static_cast<size_t>(store.index_.n_experts);
  keys_.reserve(n), slots_.reserve(n), states_.reserve(n), started_.reserve(n);
  const MutexLock lock(store.mu_);
  store.waiting_.reserve(++store.n_requests_);
  store.later_.reserve(store.n_requests_);
}

ExpertRequest::~ExpertRequest() {
  finish();
  const MutexLock lock(store_.mu_);
  --store_.n_requests_;
}

void ExpertRequest::start(size_t layer, std::span<const int32_t> experts, std::span<const int32_t> uses, Order order) {
  STOKER_CHECK(!waiting_ && experts.size() <= static_cast<size_t>(store_.index_.n_experts));
  const MutexLock lock(store_.mu_);
  layer_ = layer;
  order_ = order;
  keys_.clear();
  for (size_t i = 0; i < experts.size(); ++i) {
    keys_.push_back(store_.key_of(layer, experts[i]));
    if (!guessed()) store_.policy_.use(keys_.back(), uses.empty() ? 1 : uses[i]);
  }
  slots_.assign(experts.size(), -1);
  states_.assign(experts.size(), State::kWanted);
  n_taken_ = 0;
  store_.assign(*this);
  if (!waiting_) return;
  if (order != Order::kLater) return store_.waiting_.push_back(this);
  store_.later_.push_back(this);
  store_.work_.notify_all();
}

bool ExpertRequest::all_placed() const {
  const MutexLock lock(store_.mu_);
  return placed();
}

bool ExpertRequest::placed() const {
  return std::find(states_.begin(), states_.end(), State::kWanted) == states_.end();
}

int32_t ExpertRequest::take(Take how) {
  const MutexLock lock(store_.mu_);
  for (;;) {
    int32_t found = -1;
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i] != State::kPlaced) continue;
      const bool ready = store_.all_ready(slots_[i]);
      if (!ready && (how == Take::kReady || found >= 0)) continue;
      found = static_cast<int32_t>(i);
      if (ready) break;
    }
    if (found >= 0) {
      states_[static_cast<size_t>(found)] = State::kTaken;
      ++n_taken_;
      return found;
    }
    if (how != Take::kWait || all_taken()) return -1;
    const uint64_t start = now_ns();
    store_.assigned_.wait(store_.mu_);
    store_.wait_ns_.fetch_add(now_ns() - start, std::memory_order_relaxed);
  }
}

bool ExpertRequest::failed(int32_t i) const {
  const MutexLock lock(store_.mu_);
  const int32_t slot = slots_[static_cast<size_t>(i)];
  return slot >= 0 && store_.slots_[static_cast<size_t>(slot)].failed.load(std::memory_order_relaxed);
}

void ExpertRequest::release(int32_t i) {
  const MutexLock lock(store_.mu_);
  STOKER_CHECK(states_[static_cast<size_t>(i)] == State::kTaken);
  states_[static_cast<size_t>(i)] = State::kReleased;
  store_.drop_lease(slots_[static_cast<size_t>(i)]);
}

void ExpertRequest::finish() {
  const MutexLock lock(store_.mu_);
  if (std::exchange(waiting_, false)) std::erase(order_ == Order::kLater ? store_.later_ : store_.waiting_, this);
  for (size_t i = 0; i < states_.size(); ++i) {
    const State state = std::exchange(states_[i], State::kReleased);
    if (state == State::kPlaced || state == State::kTaken) store_.drop_lease(slots_[i]);
  }
}

}  // namespace stoker::model
