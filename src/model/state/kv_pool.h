#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/memory_nodes.h"
#include "base/result.h"
#include "kernels/args.h"
#include "model/config.h"
#include "model/state/state_slots.h"

namespace stoker::model {

/// What a layer keeps of each position.
enum class StateKind {
  kHeads,       ///< K and V of every key-value head.
  kLatent,      ///< One row for all heads: a latent, whose values are also read as V, and the rotated part of the keys.
  kLatentRows,  ///< The same, but as rows (a V tile): single positions are read.
  kIndexKeys,   ///< A key of the indexer that says which. Beside the latents of its layer, in the same page.
  kCompressed,  ///< Rows that each stand for several positions; single positions for the length of a window only.
  kWindow,      ///< Nothing but the latter.
  kRecurrent,  ///< Nothing of a position: what a convolution and a recurrence have made of all of them. Other kinds may
               ///< have that beside theirs.
  kNone,       ///< Nothing at all.
};

/// What the state of a sequence can do and what it takes: the engine asks this, and never the architecture. Every state
/// can be appended to. What all layers can do, and what they take together.
struct StateTraits {
  bool truncates = true;  ///< To any shorter length; otherwise to those that Sequence::cut_point names.
  bool forks = true;      ///< Without a copy of what both have. A fork that nobody appends to is a snapshot.
  int64_t bytes_per_position = 0;
  int64_t bytes_per_sequence = 0;    ///< However long it is.
  int64_t bytes_per_checkpoint = 0;  ///< And for each checkpoint that it keeps, and each snapshot.
};

/// Where a row that stands for `ratio` positions lies: in the page of the last of them.
struct RowPlace {
  int64_t page;
  int row;  ///< Of those in the page.
  /// Rows of so many positions that a page has room for.
  static constexpr int64_t in_page(int64_t ratio) { return std::max<int64_t>(1, kernels::kTilePositions / ratio); }
  static constexpr RowPlace of(int64_t index, int64_t ratio) {
    return {((index + 1) * ratio - 1) / kernels::kTilePositions, static_cast<int>(index % in_page(ratio))};
  }
};

/// Where the state of each layer lies inside a page. A page holds 64 positions of all layers: for each layer and
/// key-value head one K tile and one V tile (docs/kernels.md#kv-tiles), or one latent tile, 64-byte aligned.
struct KvLayout {
  struct Layer {
    StateKind kind = StateKind::kHeads;
    int64_t n_heads = 0;
    int64_t offset = 0;  ///< Of head 0's K tile in the page.
    int64_t k_tile_bytes = 0;
    int64_t v_tile_bytes = 0;  ///< 0: V is read out of the K tile.
    int64_t k_offset(int64_t head) const { return offset + head * (k_tile_bytes + v_tile_bytes); }
    int64_t v_offset(int64_t head) const { return k_offset(head) + (v_tile_bytes > 0 ? k_tile_bytes : 0); }
    int64_t bytes() const { return n_heads * (k_tile_bytes + v_tile_bytes); }
    // Of a compressed layer. A row of `ratio` positions lies in the page of the last of these (RowPlace); keys of an
    // indexer as a part of a K tile. In a state slot: V tiles, position p in tile p / 64 mod n_window_tiles; and what
    // the rows that are not complete are made of so far, f32 [2 where rows overlap][max, sum, values][dim].
    int64_t ratio = 0;
    int64_t window_offset = 0, n_window_tiles = 0, window_tile_bytes = 0;
    int64_t pool_offset = 0;
    // Of a recurrent layer, or one that has a recurrence beside its attention, in a state slot.
    int64_t conv_offset = 0;   ///< f32 [taps - 1][channels]
    int64_t state_offset = 0;  ///< f32 [heads][v_dim / 16][k_dim][16]
  };
  kernels::KvType type = kernels::KvType::kF16;
  /// Layers use the same place, one after the other: nothing is kept, since a sequence is never gone on with. In f32.
  bool shared = false;
  std::vector<Layer> layers;      ///< One that attends to keys of an earlier one is that.
  std::vector<Layer> index_keys;  ///< By layer, n_heads 0 where it has none; empty where no layer has any.
  int64_t page_bytes = 0;
  int64_t state_bytes = 0;  ///< Of a state slot; 0: no layer has such a state.
  /// The state at the end and the one before the last call.
  static constexpr int64_t kStatesPerSequence = 2;

  static KvLayout of(const ModelConfig& config, kernels::KvType type);
  /// Of a position, all layers' state of this kind.
  int64_t bytes_per_position(StateKind kind) const;
  StateTraits traits() const {
    return {.truncates = state_bytes == 0,
            .bytes_per_position = page_bytes / kernels::kTilePositions,
            .bytes_per_sequence = kStatesPerSequence * state_bytes,
            .bytes_per_checkpoint = state_bytes};
  }
};

/// Pages of key-value memory, reference-counted, and places for states of fixed size. Allocated and charged once.
/// Threads: one at a time (the engine's).
class KvPool {
 public:
  struct Options {
    int64_t n_pages = 0;
    int64_t n_states = KvLayout::kStatesPerSequence;  ///< State slots, where the layout has such states.
    uint64_t scatter_seed = 0;                        ///< Not 0: pages are handed out in a random order (tests).
    const NodeSplit* split = nullptr;                 ///< As ExpertStore::Options::split, of pages.
  };
  /// kOutOfMemory: the ledger refuses.
  static Result<std::unique_ptr<KvPool>> create(Ledger& ledger, KvLayout layout, Options options);

  const KvLayout& layout() const { return layout_; }
  int64_t n_pages() const { return static_cast<int64_t>(references_.size()); }
  int64_t n_free() const { return static_cast<int64_t>(free_.size()); }

  std::byte* page(int32_t id) const { return slab_.data() + id * layout_.page_bytes; }
  /// A page with one reference; the bytes are whatever the last user left. There must be a free one.
  int32_t take();
  void add_reference(int32_t id) { ++references_[static_cast<size_t>(id)]; }
  void drop_reference(int32_t id);
  bool is_shared(int32_t id) const { return references_[static_cast<size_t>(id)] > 1; }

  /// Null where the layout has no states of fixed size.
  StateSlots* states() const { return states_.get(); }

 private:
  KvPool() = default;
  KvLayout layout_;
  Buffer slab_;
  std::unique_ptr<StateSlots> states_;
  std::vector<int32_t> references_;
  std::vector<int32_t> free_;
};

/// The state of one sequence: the pages and state slots that hold it, and how many positions are written.
/// What it can do besides being appended to: `traits`; see docs/architecture.md#sequence-state.
class Sequence {
 public:
  /// `positions`: how long it may get, so that growing so far allocates nothing; a longer one is possible.
  explicit Sequence(KvPool& pool, int64_t positions = 0);
  Sequence(Sequence&& other) noexcept;
  Sequence& operator=(Sequence&& other) noexcept;
  ~Sequence() { clear(); }

  int64_t length() const { return length_; }
  StateTraits traits() const { return pool_->layout().traits(); }

  /// Pages that `reserve(n)` would take from the pool: for new positions, and a copy of a shared page that is not full.
  int64_t pages_wanted(int64_t n) const;
  /// State slots that it would take.
  int64_t states_wanted(int64_t n) const { return n > 0 ? states_.wanted() : 0; }
  /// Makes room for `n` further positions that nobody else can see. The state before the last call can then not be
  /// cut to any more. kOverloaded: the pool has too few pages, or state slots; nothing changes.
  Status reserve(int64_t n);
  /// Positions that can be written without another reserve.
  int64_t reserved() const;

  /// A second sequence with the same content. Pages and states are shared until one of the two writes. It has none of
  /// the checkpoints.
  Sequence fork() const;
  /// Forgets positions from `length` on. kInvalidArgument: it has fewer. kUnsupported: its state can be cut to some
  /// lengths only, and this is not one of them.
  Status truncate(int64_t length);
  /// The longest length up to `length` that it can be cut to: whoever wants `length` cuts there and appends the rest
  /// again. Where all of the state truncates that is `length` itself; otherwise the end, where the last call began, a
  /// checkpoint, or 0.
  int64_t cut_point(int64_t length) const { return states_.cut_point(std::min(length, length_)); }
  /// From now on it can be cut to where it ends. Takes a state slot until it is cut below it; where all of the state
  /// truncates, nothing.
  void checkpoint() { states_.pin(); }
  /// Gives the slots of all checkpoints back.
  void forget_checkpoints() { states_.unpin(); }
  void clear();

  /// Base of page t for t < (length + reserved) / 64, as attention takes them.
  const std::byte* const* tiles() const { return tiles_.data(); }
  std::byte* tile(int64_t index) const { return pool_->page(pages_[static_cast<size_t>(index)]); }
  KvPool& pool() const { return *pool_; }

  /// What a call reads and writes of fixed size, in slots as the layout says. Reads zeros where it is null.
  const std::byte* state() const { return states_.current(); }
  std::byte* next_state() const { return states_.next(); }

  /// The forward pass has written `n` positions.
  void advance(int64_t n) {
    length_ += n;
    if (n > 0) states_.commit(length_);
  }

 private:
  void push_page(int32_t id);
  KvPool* pool_;
  std::vector<int32_t> pages_;
  std::vector<const std::byte*> tiles_;
  int64_t length_ = 0;
  KeptStates states_;
};

}  // namespace stoker::model
