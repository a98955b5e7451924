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
constexpr int kPanelGroups = 2;
constexpr int kPerJob = 4;  // Blocks whose products are scaled in one go.

// The scales and minimums of the blocks of a super-block.
struct Head {
  Line d[kPerSuper], m[kPerSuper];
};

// Up to 4 blocks of a tile of rows times the groups of the panel, yet to be scaled.
struct Job {
  const Line* d[kPanelGroups];  // [block]
  const Line* m[kPanelGroups];
  const float* da;    // [row][kPerSuper]
  const float* sums;  // Of the activations, likewise.
  float* y[kPanelGroups];
  int n_blocks = 0;
};

struct Scratch {
  Sums<kPanelGroups> sums;
  alignas(64) int8_t bytes[kPanelGroups][kPerSuper][kBlockBytes];
  Head heads[kTurns][kPanelGroups];
  Product products[2][kPerJob][kPanelGroups];
  alignas(64) float sums_of_32[kTurns][kTileRows][kPerSuper];
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
      STOKER_UNROLL for (int i = 0; i < 8; ++i) {
        store(out[j] + i * kLineBytes, Type::kOffset == 0 ? v[i] : _mm512_sub_epi8(v[i], bytes(Type::kOffset)));
      }
    }
    lines += Type::kLines * kLineBytes;
    header += Type::kHeader;
  }
}

// Rows [begin, end) of a job: acc = fma(d * da, f32(I), acc), or with a minimum, for its blocks in ascending order.
template <bool kHasMin, int kBlocks>
STOKER_INLINE void scale_rows(const Job& job, const Product (*products)[kPanelGroups], int begin, int end) {
  Floats d[kPanelGroups][kBlocks];
  [[maybe_unused]] Floats m[kPanelGroups][kBlocks];
  STOKER_UNROLL for (int g = 0; g < kPanelGroups; ++g) {
    STOKER_UNROLL for (int j = 0; j < kBlocks; ++j) {
      d[g][j] = load_floats(job.d[g][j].lanes);
      if constexpr (kHasMin) m[g][j] = load_floats(job.m[g][j].lanes);
    }
  }
  STOKER_UNROLL for (int row = begin; row < end; ++row) {
    Floats acc[kPanelGroups];
    STOKER_UNROLL for (int g = 0; g < kPanelGroups; ++g) acc[g] = load_floats(job.y[g] + row * 16);
    STOKER_UNROLL for (int j = 0; j < kBlocks; ++j) {
      const Floats da = floats(job.da[row * kPerSuper + j]);
      STOKER_UNROLL for (int g = 0; g < kPanelGroups; ++g) {
        const Floats total = to_floats(load(products[j][g].sums[row]));
        if constexpr (kHasMin) {
          const Floats s = floats(job.sums[row * kPerSuper + j]);
          acc[g] = fma(da, fma(d[g][j], total, mul(m[g][j], s)), acc[g]);
        } else {
          acc[g] = fma(mul(d[g][j], da), total, acc[g]);
        }
      }
    }
    STOKER_UNROLL for (int g = 0; g < kPanelGroups; ++g) store(job.y[g] + row * 16, acc[g]);
  }
}

// Block `first` and the following ones of a job as another one.
STOKER_INLINE Job part_of(Job job, int first) {
  for (int g = 0; g < kPanelGroups; ++g) job.d[g] += first, job.m[g] += first;
  job.da += first, job.sums += first;
  return job;
}

// The same of a job with fewer blocks than usual, or with none.
template <bool kHasMin>
__attribute__((noinline)) void scale_few(const Job& job, const Product (*products)[kPanelGroups], int begin, int end) {
  for (int row = begin; row < end && job.n_blocks >= 2; ++row) scale_rows<kHasMin, 2>(job, products, row, row + 1);
  const int last = job.n_blocks - 1;
  if (last % 2 != 0) return;
  for (int row = begin; row < end; ++row) scale_rows<kHasMin, 1>(part_of(job, last), products + last, row, row + 1);
}

// kFull: all tiles have 16 rows.
template <class Type, bool kFull>
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
    z_.sums.clear(kPanelGroups, tiles_);
    for (s_ = 0; s_ * kPerSuper < args_.k / 32; ++s_) {
      turn_ = next_turn(turn_);
      for (int g = 0; g < n_groups_; ++g) {
        expand<Type>(lines(g), run_of(g, s_), n_blocks(), z_.bytes[g], z_.heads[turn_][g]);
      }
      const bool last = (s_ + 1) * kPerSuper >= args_.k / 32;
      ahead_ = {last ? run_of(n_groups_, 0) : run_of(0, s_ + 1), args_.group_bytes, n_groups_, kRunLines,
                kRunLines / tiles_.count() + 1};
      for (int64_t tile = 0; tile < tiles_.count(); ++tile) row_tile(tile);
    }
    drain();
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
  STOKER_INLINE const int8_t* weights(int g) const {
    return kAsItLies<Type> ? reinterpret_cast<const int8_t*>(lines(g)) : z_.bytes[g][0];
  }
  STOKER_INLINE int64_t at(int64_t tile) const { return s_ * x_.n + tiles_.row(tile); }
  // A panel of one group has that twice; the sums of the second are not written.
  STOKER_INLINE int second() const { return n_groups_ - 1; }

  STOKER_INLINE void row_tile(int64_t tile) {
    ahead_.step();
    if constexpr (Type::kHasMin) {
      sums_turn_ = next_turn(sums_turn_);
      const int16_t* from = x_.sums32 + at(tile) * kPerSuper;
      for (int i = 0; i < tiles_.rows(); ++i) eight_floats(from + i * kPerSuper, z_.sums_of_32[sums_turn_][i]);
    }
    for (int j = 0; j < n_blocks(); j += kPerJob) job(tile, j);
  }

  // Blocks j ... j + 3, as far as there are so many. Products are stored one block late, and the job before is scaled
  // from block 1 of this one to block 0 of the next.
  STOKER_INLINE void job(int64_t tile, int first) {
    const int8_t* x = x_.q32 + at(tile) * kActivations + first * 32;
    const int8_t* w[kPanelGroups] = {weights(0) + first * kBlockBytes, weights(second()) + first * kBlockBytes};
    const int8_t* next = x_.q32 + (at(tile) + kTileRows) * kActivations + first * (kTileRows * 32);
    const int n = n_blocks() - first < kPerJob ? n_blocks() - first : kPerJob;
    const int parity = static_cast<int>(n_jobs_ % 2);
    Product(&now)[kPerJob][kPanelGroups] = z_.products[parity];
    Product(&before)[kPerJob][kPanelGroups] = z_.products[1 - parity];
    block<0>(x, w, next, n, before[kPerJob - 1]);
    scale_quarter(jobs_[parity], now, 3);
    jobs_[parity] = job_of(tile, first, n);
    block<1>(x, w, next, n, now[0]);
    scale_quarter(jobs_[1 - parity], before, 0);
    block<2>(x, w, next, n, now[1]);
    scale_quarter(jobs_[1 - parity], before, 1);
    block<3>(x, w, next, n, now[2]);
    scale_quarter(jobs_[1 - parity], before, 2);
    ++n_jobs_;
  }

  // Adds up block j, if there is one, and stores the block before.
  template <int j>
  STOKER_INLINE void block(const int8_t* x, const int8_t* const (&w)[kPanelGroups], const int8_t* next, int n,
                           Product (&before)[kPanelGroups]) {
    constexpr int kC = j % 2 * 2, kOther = 2 - kC;
    if (j < n) {
      tile_zero<kC>();
      tile_zero<kC + 1>();
      tile_load<4>(x + j * 32, kActivations);
      tile_load<6>(w[0] + j * kBlockBytes, kLineBytes);
      tile_dpbssd<kC, 4, 6>();
      tile_load<7>(w[1] + j * kBlockBytes, kLineBytes);
      tile_dpbssd<kC + 1, 4, 7>();
    }
    tile_store<kOther>(before[0].sums, kLineBytes);
    tile_store<kOther + 1>(before[1].sums, kLineBytes);
    if constexpr (kFull) prefetch_near<8>(next + j * 8 * kLineBytes);
  }

  STOKER_INLINE Job job_of(int64_t tile, int first, int n) {
    const Head(&heads)[kPanelGroups] = z_.heads[turn_];
    return {{&heads[0].d[first], &heads[second()].d[first]}, {&heads[0].m[first], &heads[second()].m[first]},
            x_.d32 + at(tile) * kPerSuper + first,           z_.sums_of_32[sums_turn_][0] + first,
            {z_.sums.of(0, tile), z_.sums.of(1, tile)},      n};
  }

  STOKER_INLINE void scale_quarter(const Job& job, const Product (&products)[kPerJob][kPanelGroups], int quarter) {
    const int begin = 4 * quarter, end = begin + 4 < tiles_.rows() ? begin + 4 : tiles_.rows();
    if (job.n_blocks < kPerJob) {
      scale_few<Type::kHasMin>(job, products, begin, end);
    } else if constexpr (kFull) {
      scale_rows<Type::kHasMin, kPerJob>(job, products, begin, begin + 4);
    } else {
      for (int row = begin; row < end; ++row) scale_rows<Type::kHasMin, kPerJob>(job, products, row, row + 1);
    }
  }

  // What the last two jobs left: the last block of the last one is still in its tiles.
  STOKER_INLINE void drain() {
    const int last = static_cast<int>((n_jobs_ - 1) % 2);
    scale_quarter(jobs_[1 - last], z_.products[1 - last], 3);
    tile_store<2>(z_.products[last][kPerJob - 1][0].sums, kLineBytes);
    tile_store<3>(z_.products[last][kPerJob - 1][1].sums, kLineBytes);
    for (int quarter = 0; quarter < 4; ++quarter) scale_quarter(jobs_[last], z_.products[last], quarter);
  }

  const MatmulArgs& args_;
  const Activations& x_;
  Scratch& z_;
  const int64_t group_;
  const int n_groups_;
  const RowTiles tiles_;
  int64_t s_ = 0;
  int64_t n_jobs_ = 0;
  int turn_ = 0, sums_turn_ = 0;
  Job jobs_[2];  // Job n is jobs_[n % 2].
  Ahead ahead_;
};

template <class Type, bool kFull>
void multiply(const MatmulArgs& args) noexcept {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.rows[i] = 16, config.row_bytes[i] = 64;
  config.row_bytes[4] = 32;             // Activations
  config.rows[6] = config.rows[7] = 8;  // Weights
  run_panels<Pass, Type, kFull, kPanelGroups>(args, config);
}

template <class Type, const MatmulKernels& kOther>
void few_rows(const MatmulArgs& args) noexcept {
  const int64_t n = args.row_end - args.row_begin;
  if (n < kLeastRows || n == kTileRows) return kOther.few(args);
  multiply<Type, false>(args);
}
template <class Type, const MatmulKernels& kOther>
void many_rows(const MatmulArgs& args) noexcept {
  if (args.row_end - args.row_begin < kTileRows) return few_rows<Type, kOther>(args);
  multiply<Type, true>(args);
}

}  // namespace

const TileKernels kQ4_0 = {few_rows<Q4_0, avx512::kMatmulQ4_0>, many_rows<Q4_0, avx512::kMatmulQ4_0>};
const TileKernels kQ4_1 = {few_rows<Q4_1, avx512::kMatmulQ4_1>, many_rows<Q4_1, avx512::kMatmulQ4_1>};
const TileKernels kQ5_0 = {few_rows<Q5_0, avx512::kMatmulQ5_0>, many_rows<Q5_0, avx512::kMatmulQ5_0>};
const TileKernels kQ5_1 = {few_rows<Q5_1, avx512::kMatmulQ5_1>, many_rows<Q5_1, avx512::kMatmulQ5_1>};
const TileKernels kQ8_0 = {few_rows<Q8_0, avx512::kMatmulQ8_0>, many_rows<Q8_0, avx512::kMatmulQ8_0>};
const TileKernels kIq4Nl = {few_rows<Iq4Nl, avx512::kMatmulIq4Nl>, many_rows<Iq4Nl, avx512::kMatmulIq4Nl>};
const TileKernels kMxfp4 = {few_rows<Mxfp4, avx512::kMatmulMxfp4>, many_rows<Mxfp4, avx512::kMatmulMxfp4>};

}  // namespace stoker::kernels::amx
