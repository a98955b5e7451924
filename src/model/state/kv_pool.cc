#include "model/state/kv_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/str_cat.h"
#include "kernels/table.h"

namespace stoker::model {

using kernels::kTilePositions;

namespace {

/// Of what incomplete rows are made of.
int64_t pool_bytes(int64_t ratio, int64_t dim) {
  const int64_t floats = 3 * dim * (ModelConfig::overlaps(ratio) ? 2 : 1);
  return round_up<int64_t>(floats * static_cast<int64_t>(sizeof(float)), 64);
}

/// Behind `bytes` in a state slot.
KvLayout::Layer recurrent_layer(const ModelConfig& config, int64_t& bytes) {
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  KvLayout::Layer layer{.kind = StateKind::kRecurrent, .conv_offset = bytes};
  bytes += round_up<int64_t>((config.conv_taps - 1) * config.conv_channels() * kFloat, 64);
  layer.state_offset = bytes;
  bytes += round_up<int64_t>(config.n_state_heads * config.state_k_dim * config.state_v_dim * kFloat, 64);
  return layer;
}

/// Rows of a page behind those before it, and what lies in a state slot.
KvLayout::Layer compressed_layer(const ModelConfig& config, int64_t i, KvLayout& layout) {
  const int64_t tile = kernels::kv_tile_bytes(layout.type, static_cast<int>(config.k_dim));
  KvLayout::Layer layer{.kind = StateKind::kWindow, .n_heads = 1, .offset = layout.page_bytes};
  layer.ratio = config.ratios[static_cast<size_t>(i)];
  layer.window_offset = layout.state_bytes;
  layer.n_window_tiles = (config.window - 1 + kTilePositions - 1) / kTilePositions + 1;
  layer.window_tile_bytes = round_up<int64_t>(tile, 64);
  layer.pool_offset = layer.window_offset + layer.n_window_tiles * layer.window_tile_bytes;
  layout.state_bytes = layer.pool_offset;
  if (layer.ratio == 0) return layer;
  layer.kind = StateKind::kCompressed;
  // Rows of bf16 lie in pairs.
  const int64_t rows = std::max<int64_t>(RowPlace::in_page(layer.ratio), layout.type == kernels::KvType::kBf16 ? 2 : 1);
  layer.k_tile_bytes = round_up<int64_t>(rows * tile / kTilePositions, 64);
  layout.page_bytes += layer.bytes();
  layout.state_bytes += pool_bytes(layer.ratio, config.k_dim);
  return layer;
}

/// The keys of its indexer, if it has one.
KvLayout::Layer compressed_keys(const ModelConfig& config, int64_t i, KvLayout& layout) {
  KvLayout::Layer keys{.kind = StateKind::kIndexKeys, .offset = layout.page_bytes};
  if (!config.has_indexer(i)) return keys;
  keys.n_heads = 1;
  keys.ratio = config.ratios[static_cast<size_t>(i)];
  const int64_t tile = kernels::kv_tile_bytes(layout.type, static_cast<int>(config.index_dim));
  keys.k_tile_bytes = round_up<int64_t>(RowPlace::in_page(keys.ratio) * tile / kTilePositions, 64);
  keys.pool_offset = layout.state_bytes;
  layout.page_bytes += keys.bytes();
  layout.state_bytes += pool_bytes(keys.ratio, config.index_dim);
  return keys;
}

}  // namespace

KvLayout KvLayout::of(const ModelConfig& config, kernels::KvType type) {
  KvLayout layout;
  layout.shared = !config.causal;
  if (layout.shared) type = kernels::KvType::kF32;
  layout.type = type;
  for (int64_t i = 0; i < config.n_layers; ++i) {
    if (const int64_t donor = config.kv_layer(i); donor != i) {
      layout.layers.push_back(layout.layers[static_cast<size_t>(donor)]);
      continue;
    }
    if (!config.ratios.empty()) {
      layout.layers.push_back(compressed_layer(config, i, layout));
      layout.index_keys.push_back(compressed_keys(config, i, layout));
      continue;
    }
    if (config.is_recurrent(i)) {
      layout.layers.push_back(recurrent_layer(config, layout.state_bytes));
      continue;
    }
    if (config.is_stateless(i)) {
      layout.layers.push_back({.kind = StateKind::kNone});
      continue;
    }
    const StateKind latent = config.index_top_k > 0 ? StateKind::kLatentRows : StateKind::kLatent;
    Layer layer{.kind = config.latent_dim > 0 ? latent : StateKind::kHeads,
                .n_heads = config.n_kv_heads[i],
                .offset = layout.shared ? 0 : layout.page_bytes};
    layer.k_tile_bytes = round_up<int64_t>(kernels::kv_tile_bytes(type, static_cast<int>(config.k_dim_of(i))), 64);
    if (layer.kind == StateKind::kHeads) {
      layer.v_tile_bytes = round_up<int64_t>(kernels::kv_tile_bytes(type, static_cast<int>(config.v_dim_of(i))), 64);
    }
    layout.page_bytes = std::max(layout.page_bytes, layer.offset + layer.bytes());
    if (config.recurs_beside) {
      const Layer beside = recurrent_layer(config, layout.state_bytes);
      layer.conv_offset = beside.conv_offset, layer.state_offset = beside.state_offset;
    }
    layout.layers.push_back(layer);
    if (config.index_top_k == 0) continue;
    Layer keys{.kind = StateKind::kIndexKeys, .n_heads = config.has_indexer(i) ? 1 : 0, .offset = layout.page_bytes};
    keys.k_tile_bytes = round_up<int64_t>(kernels::kv_tile_bytes(type, static_cast<int>(config.index_dim)), 64);
    layout.page_bytes += keys.bytes();
    layout.index_keys.push_back(keys);
  }
  return layout;
}

int64_t KvLayout::bytes_per_position(StateKind kind) const {
  if (shared) return kind == StateKind::kHeads ? page_bytes / kTilePositions : 0;
  int64_t sum = 0;
  for (const std::vector<Layer>* all : {&layers, &index_keys}) {
    for (const Layer& layer : *all) sum += layer.kind == kind ? layer.bytes() : 0;
  }
  return sum / kTilePositions;
}

Result<std::unique_ptr<KvPool>> KvPool::create(Ledger& ledger, KvLayout layout, Options options) {
  auto pool = std::unique_ptr<KvPool>(new KvPool);
  pool->layout_ = std::move(layout);
  const auto bytes = checked_mul<int64_t>(pool->layout_.page_bytes, options.n_pages);
  if (!bytes || options.n_pages <= 0 || options.n_pages > INT32_MAX) {
    return Error{ErrorCode::kInvalidArgument, str_cat("a key-value cache of ", options.n_pages, " pages cannot be")};
  }
  STOKER_TRY(pool->slab_, Buffer::allocate(ledger, "kv cache", static_cast<uint64_t>(*bytes)));
  if (options.split) interleave(pool->slab_.bytes(), options.split->ids());
  if (pool->layout_.state_bytes > 0) {
    STOKER_TRY(pool->states_, StateSlots::create(ledger, pool->layout_.state_bytes, options.n_states));
  }
  const auto n = static_cast<size_t>(options.n_pages);
  pool->references_.assign(n, 0);
  pool->free_.resize(n);
  for (size_t i = 0; i < n; ++i) pool->free_[i] = static_cast<int32_t>(n - 1 - i);
  uint64_t state = options.scatter_seed;
  for (size_t i = n; state != 0 && i > 1; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(pool->free_[i - 1], pool->free_[(state >> 33) % i]);
  }
  return pool;
}

int32_t KvPool::take() {
  STOKER_CHECK(!free_.empty());
  const int32_t id = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(id)] = 1;
  return id;
}

void KvPool::drop_reference(int32_t id) {
  if (--references_[static_cast<size_t>(id)] == 0) free_.push_back(id);
}

Sequence::Sequence(KvPool& pool, int64_t positions) : pool_(&pool), states_(pool.states()) {
  const auto pages = static_cast<size_t>((positions + kTilePositions - 1) / kTilePositions);
  pages_.reserve(pages);
  tiles_.reserve(pages);
}

Sequence::Sequence(Sequence&& other) noexcept
    : pool_(other.pool_),
      pages_(std::exchange(other.pages_, {})),
      tiles_(std::exchange(other.tiles_, {})),
      length_(std::exchange(other.length_, 0)),
      states_(std::move(other.states_)) {}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(pages_, other.pages_);
  std::swap(tiles_, other.tiles_);
  std::swap(length_, other.length_);
  states_ = std::move(other.states_);  // swaps too
  return *this;
}

int64_t Sequence::reserved() const {
  // Positions after a shared page that is not full would be written into the other owner's memory.
  const int64_t in_last = length_ % kTilePositions;
  if (in_last != 0 && pool_->is_shared(pages_[static_cast<size_t>(length_ / kTilePositions)])) return 0;
  return static_cast<int64_t>(pages_.size()) * kTilePositions - length_;
}

int64_t Sequence::pages_wanted(int64_t n) const {
  if (n <= 0) return 0;
  const int64_t have = static_cast<int64_t>(pages_.size());
  const int64_t need = (length_ + n + kTilePositions - 1) / kTilePositions;
  const int64_t first = length_ / kTilePositions;
  const bool copy = length_ % kTilePositions != 0 && pool_->is_shared(pages_[static_cast<size_t>(first)]);
  return std::max<int64_t>(0, need - have) + (copy ? 1 : 0);
}

Status Sequence::reserve(int64_t n) {
  const int64_t wanted = pages_wanted(n);
  if (wanted > pool_->n_free()) {
    return Error{ErrorCode::kOverloaded, str_cat("the key-value cache has ", pool_->n_free(), " free pages of ",
                                                 kTilePositions, " positions, ", wanted, " are wanted")};
  }
  if (n <= 0) return Ok{};
  if (states_.wanted() > 0 && pool_->states()->n_free() == 0) {
    return Error{ErrorCode::kOverloaded,
                 str_cat("all ", pool_->states()->n(), " places for recurrent states are taken")};
  }
  states_.begin();
  const auto first = static_cast<size_t>(length_ / kTilePositions);
  if (length_ % kTilePositions != 0 && pool_->is_shared(pages_[first])) {
    const int32_t copy = pool_->take();
    std::memcpy(pool_->page(copy), pool_->page(pages_[first]), static_cast<size_t>(pool_->layout().page_bytes));
    pool_->drop_reference(pages_[first]);
    pages_[first] = copy;
    tiles_[first] = pool_->page(copy);
  }
  while (static_cast<int64_t>(pages_.size()) * kTilePositions < length_ + n) push_page(pool_->take());
  return Ok{};
}

void Sequence::push_page(int32_t id) {
  pages_.push_back(id);
  tiles_.push_back(pool_->page(id));
}

Sequence Sequence::fork() const {
  Sequence copy(*pool_);
  const int64_t used = (length_ + kTilePositions - 1) / kTilePositions;
  for (int64_t i = 0; i < used; ++i) {
    pool_->add_reference(pages_[static_cast<size_t>(i)]);
    copy.push_page(pages_[static_cast<size_t>(i)]);
  }
  copy.length_ = length_;
  copy.states_ = states_.fork();
  return copy;
}

Status Sequence::truncate(int64_t length) {
  if (length < 0 || length > length_) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("a sequence of ", length_, " positions cannot be cut to ", length)};
  }
  if (const int64_t point = states_.cut_point(length); point != length) {
    return Error{ErrorCode::kUnsupported,
                 str_cat("a sequence of ", length_, " positions with a recurrent state cannot be cut to ", length,
                         "; the nearest state below that it has kept is that at ", point)};
  }
  states_.cut(length);
  const auto keep = static_cast<size_t>((length + kTilePositions - 1) / kTilePositions);
  while (pages_.size() > keep) {
    pool_->drop_reference(pages_.back());
    pages_.pop_back();
    tiles_.pop_back();
  }
  length_ = length;
  return Ok{};
}

void Sequence::clear() {
  for (int32_t id : pages_) pool_->drop_reference(id);
  pages_.clear();
  tiles_.clear();
  length_ = 0;
  states_.clear();
}

}  // namespace stoker::model
