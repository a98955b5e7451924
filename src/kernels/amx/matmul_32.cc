// 32-blocks: a block has its own scale, so its integers are a product of their own, over 32 bytes of a tile.
#include "kernels/amx/matmul_tiles.h"
#include "kernels/amx/matmul_types.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::amx {
namespace {

#include "kernels/vec/matmul_decode.inc.h"
//
#include "kernels/vec/matmul_types_32.inc.h"

constexpr int kBlockBytes = 512;  // Of 16 rows, one byte each.
constexpr int kPerSuper = 8;
constexpr int kPerBlock = 4;  // Products of two tiles of rows and two groups.
constexpr int kMostBlocks =
    2;  // In a step: with one the scales cost more, with four scratch leaves the first-level cache.

// The scales and minimums of the blocks of a super-block.
struct Head {
  Line d[kPerSuper], m[kPerSuper];
};

// 16 rows of activations times some blocks of a group, yet to be scaled.
struct Unit {
  const Product* products;  // Those of the next block are kPerBlock further.
  const Line* d;            // [block]
  const Line* m;
  const float* da;    // [row][kPerSuper]
  const float* sums;  // Of the activations, likewise.
  float* y;
};

constexpr int kMostUnits = 4;
struct Job {
  Unit units[kMostUnits];
  int n = 0, n_blocks = 0;
};

struct Scratch {
  Sums sums;
  alignas(64) int8_t bytes[kPanelGroups][kPerSuper][kBlockBytes];
  Head heads[2][kPanelGroups];  // The last step of a super-block is scaled during the first of the next.
  Product products[2][kMostBlocks * kPerBlock];  // Likewise from step to step.
  alignas(64) float sums_of_32[2][2 * kTileRows][kPerSuper];
};
static_assert(sizeof(Scratch) <= kMatmulScratchBytes);

// Q8_0 lies in memory as tiles want it.
template <class Type>
constexpr bool kAsItLies = Type::kMax == 0 && Type::kLines == 8;

template <class Type>
STOKER_INLINE void expand(const uint8_t* lines, const uint8_t* header, int n_blocks,
                          int8_t (&out)[kPerSuper][kBlockBytes], Head& head) {
  for (int j = 0; j < n_blocks; ++j) {
    store(head.d[j].lanes, Type::scale(lines, header));
    if constexpr (Type::kHasMin) store(head.m[j].lanes, Type::min(lines));
    if constexpr (!kAsItLies<Type>) {
      Ints v[8];
      Type::decode(lines, v);
      STOKER_UNROLL for (int i = 0; i < 8; ++i) store(out[j] + i * kLineBytes, with_sign<Type>(v[i]));
    }
    lines += Type::kLines * kLineBytes;
    header += Type::kHeader;
  }
}

// acc = fma(d * da, f32(I), acc), or with a minimum, for the blocks in ascending order.
template <bool kHasMin, int kBlocks>
STOKER_INLINE void scale_unit(const Unit& u) {
  Floats d[kBlocks];
  [[maybe_unused]] Floats m[kBlocks];
  STOKER_UNROLL for (int j = 0; j < kBlocks; ++j) {
    d[j] = load_floats(u.d[j].lanes);
    if constexpr (kHasMin) m[j] = load_floats(u.m[j].lanes);
  }
  STOKER_UNROLL for (int row = 0; row < kTileRows; ++row) {
    float* y = u.y + row * 16;
    Floats acc = load_floats(y);
    STOKER_UNROLL for (int j = 0; j < kBlocks; ++j) {
      const Floats da = floats(u.da[row * kPerSuper + j]);
      const Floats total = to_floats(load(u.products[j * kPerBlock].sums[row]));
      if constexpr (kHasMin) {
        const Floats s = floats(u.sums[row * kPerSuper + j]);
        acc = fma(da, fma(d[j], total, mul(m[j], s)), acc);
      } else {
        acc = fma(mul(d[j], da), total, acc);
      }
    }
    store(y, acc);
  }
}

template <bool kHasMin>
STOKER_INLINE void scale_units(const Job& job, int begin, int end) {
  for (int i = begin; i < end && i < job.n; ++i) {
    if (job.n_blocks == 2) {
      scale_unit<kHasMin, 2>(job.units[i]);
    } else {
      scale_unit<kHasMin, 1>(job.units[i]);
    }
  }
}

// Block 0; block j is 32 bytes further in the rows and kBlockBytes in the weights.
struct Operands {
  const int8_t* rows[2];
  const int8_t* weights[2];
  const int8_t* next;  // Rows to fetch meanwhile.
};

// products[kPerBlock j + 2 a + b] = tile a of the rows times group b, block j, while `before` is scaled.
template <bool kHasMin, int kRows, int kGroups, int kBlocks>
STOKER_INLINE void multiply(const Operands& x, Product* products, const Job& before) {
  STOKER_UNROLL for (int j = 0; j < kBlocks; ++j) {
    tile_zero<0>();
    tile_load<4>(x.rows[0] + j * 32, kActivations);
    tile_load<6>(x.weights[0] + j * kBlockBytes, kLineBytes);
    tile_dpbssd<0, 4, 6>();
    if constexpr (kGroups == 2) {
      tile_zero<1>();
      tile_load<7>(x.weights[1] + j * kBlockBytes, kLineBytes);
      tile_dpbssd<1, 4, 7>();
    }
    if constexpr (kRows == 2) {
      tile_zero<2>();
      tile_load<5>(x.rows[1] + j * 32, kActivations);
      tile_dpbssd<2, 5, 6>();
    }
    if constexpr (kRows == 2 && kGroups == 2) {
      tile_zero<3>();
      tile_dpbssd<3, 5, 7>();
    }
    prefetch_near<16>(x.next + j * 16 * kLineBytes);
    scale_units<kHasMin>(before, kMostUnits * j / kBlocks, kMostUnits * (j + 1) / kBlocks);
    tile_store<0>(products[j * kPerBlock + 0].sums, kLineBytes);
    if constexpr (kGroups == 2) tile_store<1>(products[j * kPerBlock + 1].sums, kLineBytes);
    if constexpr (kRows == 2) tile_store<2>(products[j * kPerBlock + 2].sums, kLineBytes);
    if constexpr (kRows == 2 && kGroups == 2) tile_store<3>(products[j * kPerBlock + 3].sums, kLineBytes);
  }
}

template <class Type>
class Pass {
 public:
  STOKER_INLINE Pass(const MatmulArgs& args, int64_t group, int n_groups, const RowTiles& tiles)
      : args_(args),
        x_(*args.x),
        z_(*reinterpret_cast<Scratch*>(args.scratch)),
        group_(group),
        n_groups_(n_groups),
        tiles_(tiles) {}

  STOKER_INLINE void run() {
    z_.sums.clear(n_groups_, tiles_);
    for (s_ = 0; s_ * kPerSuper < args_.k / 32; ++s_) {
      for (int g = 0; g < n_groups_; ++g) expand<Type>(lines(g), run_of(g, s_), n_blocks(), z_.bytes[g], head(g));
      ahead_ = {
          {run_of(0, s_ + 1), run_of(n_groups_ - 1, s_ + 1)}, n_groups_, kRunLines, kRunLines * 2 / tiles_.count() + 1};
      int64_t tile = 0;
      for (; tile + 2 <= tiles_.count(); tile += 2) rows_step<2>(tile);
      if (tile < tiles_.count()) rows_step<1>(tile);
    }
    scale_units<Type::kHasMin>(jobs_[n_ % 2], 0, kMostUnits);
    z_.sums.write(args_, group_, n_groups_, tiles_);
  }

 private:
  static constexpr int64_t kRunLines = kPerSuper * Type::kLines + kPerSuper * Type::kHeader / kLineBytes;

  // Blocks of this super-block; the last one may have fewer than 8.
  STOKER_INLINE int n_blocks() const {
    const int64_t left = args_.k / 32 - s_ * kPerSuper;
    return left < kPerSuper ? static_cast<int>(left) : kPerSuper;
  }
  // Headers come first, in whole lines.
  STOKER_INLINE const uint8_t* run_of(int g, int64_t s) const {
    constexpr int kBytes = kPerSuper * (Type::kLines * kLineBytes + Type::kHeader);
    return reinterpret_cast<const uint8_t*>(args_.w) + (group_ + g) * args_.group_bytes + s * kBytes;
  }
  STOKER_INLINE const uint8_t* lines(int g) const {
    return run_of(g, s_) + (n_blocks() * Type::kHeader + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  STOKER_INLINE Head& head(int g) { return z_.heads[s_ % 2][g]; }
  STOKER_INLINE const int8_t* weights(int g) const {
    return kAsItLies<Type> ? reinterpret_cast<const int8_t*>(lines(g)) : z_.bytes[g][0];
  }
  STOKER_INLINE int64_t at(int64_t tile) const { return s_ * x_.n + tiles_.row(tile); }

  template <int kRows>
  STOKER_INLINE void rows_step(int64_t tile) {
    ahead_.step();
    ++pairs_;
    if constexpr (Type::kHasMin) {
      for (int a = 0; a < kRows; ++a) {
        const int16_t* from = x_.sums32 + at(tile + a) * kPerSuper;
        STOKER_UNROLL for (int i = 0; i < kTileRows; ++i) {
          eight_floats(from + i * kPerSuper, z_.sums_of_32[pairs_ % 2][a * kTileRows + i]);
        }
      }
    }
    int j = 0;
    if (n_groups_ == 2) {
      for (; j + 2 <= n_blocks(); j += 2) blocks_step<kRows, 2, 2>(tile, j);
      if (j < n_blocks()) blocks_step<kRows, 2, 1>(tile, j);
    } else {
      for (; j < n_blocks(); ++j) blocks_step<kRows, 1, 1>(tile, j);
    }
  }

  template <int kRows, int kGroups, int kBlocks>
  STOKER_INLINE void blocks_step(int64_t tile, int j) {
    const Job& before = jobs_[n_ % 2];
    ++n_;
    Product* out = z_.products[n_ % 2];
    const int8_t* rows[2] = {x_.q32 + at(tile) * kActivations + j * 32,
                             x_.q32 + at(tile + kRows - 1) * kActivations + j * 32};
    const int8_t* next = x_.q32 + (at(tile) + 2 * kTileRows) * kActivations + j * 16 * kLineBytes;
    multiply<Type::kHasMin, kRows, kGroups, kBlocks>(
        {{rows[0], rows[1]}, {weights(0) + j * kBlockBytes, weights(kGroups - 1) + j * kBlockBytes}, next}, out,
        before);
    Job& job = jobs_[n_ % 2];
    job.n = 0;
    job.n_blocks = kBlocks;
    STOKER_UNROLL for (int a = 0; a < kRows; ++a) {
      const float* da = x_.d32 + at(tile + a) * kPerSuper + j;
      const float* sums = z_.sums_of_32[pairs_ % 2][a * kTileRows] + j;
      STOKER_UNROLL for (int g = 0; g < kGroups; ++g) {
        job.units[job.n++] = {&out[2 * a + g], &head(g).d[j], &head(g).m[j], da, sums, z_.sums.of(g, tile + a)};
      }
    }
  }

  const MatmulArgs& args_;
  const Activations& x_;
  Scratch& z_;
  const int64_t group_;
  const int n_groups_;
  const RowTiles tiles_;
  int64_t s_ = 0;
  int64_t pairs_ = 0;  // Of tiles, so far.
  int64_t n_ = 0;      // Steps so far.
  Job jobs_[2];        // What step n left is jobs_[n % 2].
  Ahead ahead_{};
};

template <class Type, const MatmulKernels& kFew>
void many_rows(const MatmulArgs& args) noexcept {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.rows[i] = 16, config.row_bytes[i] = 64;
  config.row_bytes[4] = config.row_bytes[5] = 32;  // Activations
  config.rows[6] = config.rows[7] = 8;             // Weights
  for_panels(
      args, config, kFew.many, [&](int64_t group, int n_groups, const RowTiles& tiles) __attribute__((always_inline)) {
        Pass<Type>(args, group, n_groups, tiles).run();
      });
}

}  // namespace

const MatmulFn kManyQ4_0 = many_rows<Q4_0, avx512::kMatmulQ4_0>;
const MatmulFn kManyQ4_1 = many_rows<Q4_1, avx512::kMatmulQ4_1>;
const MatmulFn kManyQ5_0 = many_rows<Q5_0, avx512::kMatmulQ5_0>;
const MatmulFn kManyQ5_1 = many_rows<Q5_1, avx512::kMatmulQ5_1>;
const MatmulFn kManyQ8_0 = many_rows<Q8_0, avx512::kMatmulQ8_0>;
const MatmulFn kManyIq4Nl = many_rows<Iq4Nl, avx512::kMatmulIq4Nl>;
const MatmulFn kManyMxfp4 = many_rows<Mxfp4, avx512::kMatmulMxfp4>;

}  // namespace stoker::kernels::amx
