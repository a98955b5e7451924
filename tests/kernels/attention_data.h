// K and V of one head in pages that lie anywhere, and queries over them.
#pragma once

#include <string>
#include <vector>

#include "kernels/table.h"

namespace stoker::kernels {

/// Every table with kernels of its own for attention that this machine can run, scalar first: AMX has those of AVX-512,
/// AVX-VNNI those of AVX2.
std::vector<const Table*> attention_tables();

struct HeadShape {
  KvType type = KvType::kF16;
  int k_dim = 64;
  int v_dim = 64;
  bool values_in_keys = false;
};
std::string name_of(const HeadShape& shape);
/// Dimension `d` of a head's K or V as a cache of `type` gives it back; bf16 without its rule for tiny numbers.
float as_stored(KvType type, const float* head, int dim, int d);

/// The pages of one sequence with room for `capacity` positions; everything that is not stored is NaN.
class KvPages {
 public:
  KvPages(HeadShape shape, int64_t capacity, uint32_t seed = 1);

  /// Stores positions [begin, end) with `table`, in runs of `run` positions (cut at tile borders).
  /// Returns whether all was finite.
  bool store(const Table& table, int64_t begin, int64_t end, int64_t run = 64);
  /// Overwrites [begin, end) with values of the type that no query should see: NaN, infinity and large numbers.
  void poison(int64_t begin, int64_t end);

  const HeadShape& shape() const { return shape_; }
  const std::byte* const* pages() const { return pages_.data(); }
  std::byte* k_tile(int64_t tile) { return storage_.data() + offset_of(tile) + kKOffset; }
  std::byte* v_tile(int64_t tile) { return k_tile(tile) - kKOffset + v_offset(); }
  int64_t k_offset() const { return kKOffset; }
  int64_t v_offset() const;
  const std::vector<std::byte>& storage() const { return storage_; }

  /// What was stored, in f32, before any rounding: [position][dim].
  std::vector<float> k, v;

 private:
  static constexpr int64_t kKOffset = 128;  // Something else lies before it in the page.
  size_t offset_of(int64_t tile) const { return offsets_[static_cast<size_t>(tile)]; }

  HeadShape shape_;
  std::vector<std::byte> storage_;
  std::vector<size_t> offsets_;
  std::vector<const std::byte*> pages_;
};

/// One query head, with its own storage.
struct Query {
  std::vector<float> q;
  int64_t begin = 0, end = 0;
  bool has_sink = false;
  float sink = 0;
  float slope = 0;  ///< Of the distance to `position`.
  int64_t position = 0;
};

/// `n` heads of the token at `end - 1`; with `sinks` about every third has one.
std::vector<Query> heads(const HeadShape& shape, int n, int64_t begin, int64_t end, uint32_t seed, bool sinks = false);
/// Causal prefill: `n` tokens from `first` on, two heads each, seeing at most `window` positions (0: all).
std::vector<Query> prefill(const HeadShape& shape, int64_t first, int n, int64_t window, bool sinks);

struct Options {
  float scale = 0.125f;
  float softcap = 0;
};

/// Runs the queries in calls of `group` and returns their outputs one after another.
std::vector<float> run_attention(const Table& table, const KvPages& kv, const std::vector<Query>& queries,
                                 const Options& options, int group);

/// The same from parts: tiles [0, alone) in one, up to `goes_on` merged onto them by a second call, the others one by
/// one; the queries are merged in two halves. All queries see the last tile.
std::vector<float> run_in_parts(const Table& table, const KvPages& kv, const std::vector<Query>& queries,
                                const Options& options, int64_t alone, int64_t goes_on);

}  // namespace stoker::kernels
