#include "engine/bench_kernels.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/pool.h"
#include "engine/bench_peaks.h"

namespace stoker::engine {
namespace {

using kernels::MatmulFn;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kValues = 4096;  ///< Of a row.
constexpr int64_t kRows[] = {1, 2, 4, 8, 16, 512};
constexpr int64_t kFewRows = 16;

/// Of values that it sorts.
double median(std::span<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Pieces per second, the threads' rates added: piece(i, thread) for i = 0 ... n - 1, at least one per thread.
template <class F>
double pieces_per_second(Pool& pool, int64_t n, F piece) {
  std::vector<double> seconds(static_cast<size_t>(n)), rates(static_cast<size_t>(pool.size()));
  pool.run([&](Worker& worker) {
    const Range mine = worker.share(n);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const double begin = thread_seconds();
      piece(i, worker.index());
      seconds[static_cast<size_t>(i)] = thread_seconds() - begin;
    }
    const std::span own = std::span(seconds).subspan(static_cast<size_t>(mine.begin), static_cast<size_t>(mine.size()));
    rates[static_cast<size_t>(worker.index())] = 1 / std::max(1e-9, median(own));
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

/// Activations of any content: kernels take the same time for all of them.
class Activations {
 public:
  explicit Activations(int64_t n) {
    const auto count = [&](int64_t per_block) { return static_cast<size_t>(kValues / 256 * n * per_block); };
    f32_.assign(static_cast<size_t>(n * kValues), 0.5f);
    q_.assign(count(256), 3);
    scales_.assign(count(8), 0.01f);
    sums_.assign(count(16), 48);
    view_ = {.n = n,
             .k = kValues,
             .f32 = f32_.data(),
             .f32_stride = kValues,
             .q256 = q_.data(),
             .d256 = scales_.data(),
             .sums256 = sums_.data(),
             .q32 = q_.data(),
             .d32 = scales_.data(),
             .sums32 = sums_.data()};
  }
  const kernels::Activations& view() const { return view_; }

 private:
  std::vector<float> f32_, scales_;
  std::vector<int8_t> q_;
  std::vector<int16_t> sums_;
  kernels::Activations view_;
};

class KernelBench {
 public:
  explicit KernelBench(const KernelOptions& options) : options_(options) {}

  Status run(Ledger& ledger) {
    STOKER_TRY(pool_, Pool::create({.n_threads = options_.threads}));
    // At least a piece of many rows of f32 for every thread.
    matrix_bytes_ = std::max<int64_t>(options_.quick ? 0 : 192, 4 * options_.threads) * kMiB;
    STOKER_TRY(weights_, Buffer::allocate(ledger, "kernel weights", static_cast<uint64_t>(matrix_bytes_)));
    STOKER_TRY(outputs_, Buffer::allocate(ledger, "kernel outputs", output_bytes()));
    STOKER_TRY(scratch_, Buffer::allocate(ledger, "worker scratch",
                                          static_cast<uint64_t>(options_.threads * kernels::kMatmulScratchBytes)));
    // As f16, f32 and exponent bytes alike this is a small ordinary number: denormals would be slow on some machines.
    std::memset(weights_.data(), 0x6b, weights_.size());
    std::memset(outputs_.data(), 0, outputs_.size());
    measure_bounds();
    for (const gguf::TensorType type : options_.types.empty() ? kernel_types(*options_.table) : options_.types) {
      STOKER_TRY_STATUS(run_type(type));
    }
    return Ok{};
  }

 private:
  static constexpr int64_t kManyGroups = 16;  ///< In a piece of many rows.

  void measure_bounds() {
    constexpr int64_t kPiece = kMiB;
    const int64_t rounds = options_.quick ? 10'000 : 5'000'000;
    for (const ReadOrder order : kReadOrders) {
      const auto read = [&](int64_t i, int) { read_all(weights_.data() + i * kPiece, kPiece, order); };
      bounds_.read = std::max(bounds_.read, kPiece * pieces_per_second(*pool_, matrix_bytes_ / kPiece, read));
    }
    bounds_.int8_ops = int8_peak(options_.table->isa, rounds) * options_.threads;
    bounds_.float_ops = float_peak(options_.table->isa, rounds) * options_.threads;
    if (options_.on_bounds) options_.on_bounds(bounds_);
  }

  Status run_type(gguf::TensorType type) {
    const auto id = static_cast<size_t>(type);
    const kernels::MatmulKernels& matmul = options_.table->matmul[id];
    group_bytes_ = kernels::group_bytes(type, kValues);
    const bool is_float = kernels::activation_form(type) == kernels::ActForm::kF32;
    const double peak = is_float ? bounds_.float_ops : bounds_.int8_ops;
    for (const int64_t rows : kRows) {
      if (options_.cancel && options_.cancel->load()) return Error{ErrorCode::kCancelled, "cancelled"};
      KernelRow row{.type = type, .isa = options_.table->matmul_isa[id], .rows = rows};
      row.weight_bytes = rate(matmul, rows);
      const double weights = row.weight_bytes / static_cast<double>(group_bytes_) * 16 * kValues;
      row.operations = 2 * weights * static_cast<double>(rows);
      row.share = std::max(row.weight_bytes / bounds_.read, peak > 0 ? row.operations / peak : 0);
      if (options_.on_row) options_.on_row(row);
    }
    return Ok{};
  }

  /// Bytes of weights per second.
  double rate(const kernels::MatmulKernels& matmul, int64_t n_rows) {
    const Activations x(n_rows);
    const int64_t most_groups = matrix_bytes_ / group_bytes_;
    const int64_t in_piece = n_rows > kFewRows ? kManyGroups : std::max<int64_t>(1, kMiB / group_bytes_);
    const int64_t wanted = n_rows > kFewRows ? (options_.quick ? 1 : 12) * options_.threads : most_groups / in_piece;
    const int64_t n_pieces = std::min(wanted, most_groups / in_piece);
    return static_cast<double>(in_piece * group_bytes_) *
           pieces_per_second(*pool_, n_pieces, [&](int64_t i, int thread) {
             product(matmul, x, i * in_piece, (i + 1) * in_piece, thread);
           });
  }

  /// Outputs of a piece always lie at the start of the thread's part: they are no part of what is measured.
  void product(const kernels::MatmulKernels& matmul, const Activations& x, int64_t begin, int64_t end, int thread) {
    const int64_t n_rows = x.view().n;
    const MatmulFn fn = n_rows == 1 ? matmul.one : n_rows <= kFewRows ? matmul.few : matmul.many;
    const int64_t stride = (end - begin) * 16;
    auto* y = outputs_.as<float>() + thread * output_floats_;
    const std::byte* w = weights_.data() + begin * group_bytes_;
    const kernels::MatmulArgs::Run run{w, w + (end - begin) * group_bytes_};
    fn({.w = w,
        .group_bytes = group_bytes_,
        .k = kValues,
        .group_begin = 0,
        .group_end = end - begin,
        .x = &x.view(),
        .row_begin = 0,
        .row_end = n_rows,
        .y = y,
        .y_stride = stride,
        .scratch = scratch_.data() + thread * kernels::kMatmulScratchBytes,
        .spread = matmul.spread ? &run : nullptr});
  }

  uint64_t output_bytes() {
    // A piece of few rows has at most 1 MiB of weights of 2 bits, a piece of many rows 16 groups.
    const int64_t few = kFewRows * (kMiB * 4 / kValues + 16), many = 512 * kManyGroups * 16;
    output_floats_ = round_up<int64_t>(std::max(few, many), 16);
    return static_cast<uint64_t>(4 * output_floats_ * options_.threads);
  }

  const KernelOptions& options_;
  std::unique_ptr<Pool> pool_;
  Buffer weights_, outputs_, scratch_;
  KernelBounds bounds_;
  int64_t matrix_bytes_ = 0, group_bytes_ = 0, output_floats_ = 0;
};

}  // namespace

std::vector<gguf::TensorType> kernel_types(const kernels::Table& table) {
  std::vector<gguf::TensorType> types;
  for (size_t id = 0; id < table.matmul.size(); ++id) {
    if (table.matmul[id].one) types.push_back(static_cast<gguf::TensorType>(id));
  }
  return types;
}

Status bench_kernels(Ledger& ledger, const KernelOptions& options) { return KernelBench(options).run(ledger); }

}  // namespace stoker::engine
