// bench_kernels [--isa NAME] [--type NAME] [--k N] [--threads N]: the matrix products of every table, type by type.
//
// One and few rows stream a matrix larger than any cache and are quoted in GB/s of weights and as a share of a plain
// read loop over the same memory; many rows in GOP/s and as a share of the instruction's peak. Everything is timed in
// pieces of a few milliseconds of thread processor time, and the median piece counts, so that a busy machine shows
// less.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "bench/peaks.h"
#include "kernels/table.h"

namespace stoker::bench {
namespace {

using kernels::MatmulFn;

struct Options {
  std::string isa, type;
  int64_t k = 4096;
  int threads = 1;
};

constexpr int64_t kMatrixBytes = 192 << 20;
constexpr int64_t kManyRows = 512;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Seconds of the median piece, were all threads one: the threads' rates are added. piece(i, thread) for i = 0 ... n
// - 1.
template <class F>
double piece_seconds(int threads, int64_t n, F piece) {
  std::vector<std::vector<double>> seconds(static_cast<size_t>(threads));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (int64_t i = n * t / threads; i < n * (t + 1) / threads; ++i) {
        const double begin = thread_seconds();
        piece(i, t);
        seconds[static_cast<size_t>(t)].push_back(thread_seconds() - begin);
      }
    });
  }
  double rate = 0;
  for (int t = 0; t < threads; ++t) {
    running[static_cast<size_t>(t)].join();
    rate += 1 / median(seconds[static_cast<size_t>(t)]);
  }
  return 1 / rate;
}

// Activations of any content: kernels take the same time for all of them.
class Rows {
 public:
  Rows(int64_t n, int64_t k) : blocks_((k + 255) / 256 * n) {
    const auto count = [&](int64_t per_block) { return static_cast<size_t>(blocks_ * per_block); };
    f32_.assign(static_cast<size_t>(n * k), 0.5f);
    q_.assign(count(256), 3);
    scales_.assign(count(8), 0.01f);
    sums_.assign(count(16), 48);
    view_ = {.n = n,
             .k = k,
             .f32 = f32_.data(),
             .f32_stride = k,
             .q256 = q_.data(),
             .d256 = scales_.data(),
             .sums256 = sums_.data(),
             .q32 = q_.data(),
             .d32 = scales_.data(),
             .sums32 = sums_.data()};
  }
  const kernels::Activations& view() const { return view_; }

 private:
  int64_t blocks_;
  std::vector<float> f32_, scales_;
  std::vector<int8_t> q_;
  std::vector<int16_t> sums_;
  kernels::Activations view_;
};

class Bench {
 public:
  static Result<Bench> create(const Options& options, Ledger& ledger) {
    Bench bench(options);
    STOKER_TRY(bench.weights_, Buffer::allocate(ledger, "weights", kMatrixBytes));
    // As f16, f32 and exponent bytes alike this is a small ordinary number: denormals would be slow on some machines.
    std::memset(bench.weights_.data(), 0x6b, kMatrixBytes);
    return bench;
  }

  void run() {
    for (const kernels::Table* table : kernels::runnable_tables()) {
      if (!options_.isa.empty() ? isa_name(table->isa) == options_.isa : table->isa != Isa::kScalar) run_table(*table);
    }
  }

 private:
  explicit Bench(const Options& options) : options_(options) {}

  void run_table(const kernels::Table& table) {
    read_ = read_rate();
    int8_peak_ = int8_peak(table.isa) * options_.threads;
    float_peak_ = float_peak(table.isa) * options_.threads;
    std::printf("%s, k %ld, %d threads: plain read %.1f GB/s, int8 peak %.0f GOP/s, f32 peak %.0f GFLOP/s\n",
                std::string(isa_name(table.isa)).c_str(), static_cast<long>(options_.k), options_.threads, read_ / 1e9,
                int8_peak_ / 1e9, float_peak_ / 1e9);
    std::printf("%-7s %-8s %15s %15s %8s %8s %8s %16s %13s\n", "type", "from", "1 row, GB/s", "in cache, GB/s", "2",
                "4", "8", "512 rows, GOP/s", "pack, GB/s");
    for (int id = 0; id < kernels::kTypeIds; ++id) {
      const auto type = static_cast<gguf::TensorType>(id);
      const auto info = gguf::type_info(type);
      const auto& matmul = table.matmul[static_cast<size_t>(id)];
      if (matmul.one && (options_.type.empty() || info->name == options_.type)) run_type(table, type);
    }
  }

  void run_type(const kernels::Table& table, gguf::TensorType type) {
    const auto id = static_cast<size_t>(type);
    const kernels::MatmulKernels& matmul = table.matmul[id];
    group_bytes_ = kernels::group_bytes(type, options_.k);
    const double one = stream_rate(matmul.one, 1), cached = cached_rate(matmul.one);
    const double many = many_rate(matmul.many);
    const double peak = kernels::activation_form(type) == kernels::ActForm::kF32 ? float_peak_ : int8_peak_;
    std::printf("%-7s %-8s %8.1f (%3.0f%%) %15.1f %8.1f %8.1f %8.1f %9.0f (%3.0f%%) %13.1f\n",
                std::string(gguf::type_name(type)).c_str(), std::string(isa_name(table.matmul_isa[id])).c_str(),
                one / 1e9, 100 * one / read_, cached / 1e9, stream_rate(matmul.few, 2) / 1e9,
                stream_rate(matmul.few, 4) / 1e9, stream_rate(matmul.few, 8) / 1e9, many / 1e9,
                peak > 0 ? 100 * many / peak : 0, pack_rate(table.pack[id], type) / 1e9);
    std::fflush(stdout);
  }

  double read_rate() {
    constexpr int64_t kPiece = 4 << 20;
    return kPiece / piece_seconds(options_.threads, kMatrixBytes / kPiece,
                                  [&](int64_t i, int) { read_all(weights_.data() + i * kPiece, kPiece); });
  }

  // Runs `matmul` over groups [begin, end) of the matrix.
  void product(MatmulFn matmul, const Rows& rows, int64_t begin, int64_t end, float* y, int thread) {
    matmul({.w = weights_.data(),
            .group_bytes = group_bytes_,
            .k = options_.k,
            .group_begin = begin,
            .group_end = end,
            .x = &rows.view(),
            .row_begin = 0,
            .row_end = rows.view().n,
            .y = y,
            .y_stride = y_stride_,
            .scratch = scratch_ + thread * kernels::kMatmulScratchBytes});
  }

  int64_t n_groups() const { return kMatrixBytes / group_bytes_; }

  // Bytes of weights per second, streaming the whole matrix.
  double stream_rate(MatmulFn matmul, int64_t n_rows) {
    const Rows rows(n_rows, options_.k);
    float* y = outputs(n_rows, n_groups());
    const int64_t groups = std::max<int64_t>(1, (4 << 20) / group_bytes_);
    return static_cast<double>(groups * group_bytes_) /
           piece_seconds(options_.threads, n_groups() / groups, [&](int64_t i, int thread) {
             product(matmul, rows, i * groups, (i + 1) * groups, y, thread);
           });
  }

  // The same over a few groups that stay in the second-level cache.
  double cached_rate(MatmulFn matmul) {
    const Rows rows(1, options_.k);
    float* y = outputs(1, n_groups());
    const int64_t groups = std::max<int64_t>(1, (256 << 10) / group_bytes_);
    return static_cast<double>(groups * group_bytes_) / piece_seconds(options_.threads, 200, [&](int64_t, int thread) {
             product(matmul, rows, thread * groups, (thread + 1) * groups, y, thread);
           });
  }

  double many_rate(MatmulFn matmul) {
    const Rows rows(kManyRows, options_.k);
    constexpr int64_t kGroups = 16;
    const int64_t n_pieces = std::min(12 * options_.threads, static_cast<int>(n_groups() / kGroups));
    float* y = outputs(kManyRows, n_pieces * kGroups);
    return 2.0 * 16 * kGroups * static_cast<double>(options_.k * kManyRows) /
           piece_seconds(options_.threads, n_pieces, [&](int64_t i, int thread) {
             product(matmul, rows, i * kGroups, (i + 1) * kGroups, y, thread);
           });
  }

  // Bytes of the file per second; the first half of the buffer is packed into the second.
  double pack_rate(kernels::PackFn pack, gguf::TensorType type) {
    const auto info = gguf::type_info(type);
    const int64_t row_bytes = options_.k / info->n_weights * info->n_bytes;
    const int64_t groups = std::max<int64_t>(1, (2 << 20) / group_bytes_);
    const int64_t n_pieces = kMatrixBytes / 2 / (groups * group_bytes_);
    const double seconds = piece_seconds(options_.threads, n_pieces, [&](int64_t i, int) {
      for (int64_t g = i * groups; g < (i + 1) * groups; ++g) {
        pack({.rows = weights_.data() + g * 16 * row_bytes,
              .row_bytes = row_bytes,
              .n_rows = 16,
              .k = options_.k,
              .group = weights_.data() + kMatrixBytes / 2 + g * group_bytes_});
      }
    });
    return static_cast<double>(groups * 16 * row_bytes) / seconds;
  }

  // Room for n_rows of outputs of n_groups groups, touched.
  float* outputs(int64_t n_rows, int64_t n_groups) {
    y_stride_ = n_groups * 16;
    y_.assign(static_cast<size_t>(n_rows * y_stride_ + 16), 0.0f);
    scratch_storage_.resize(static_cast<size_t>(options_.threads) * kernels::kMatmulScratchBytes + 64);
    scratch_ = static_cast<std::byte*>(align(scratch_storage_.data()));
    return static_cast<float*>(align(y_.data()));
  }
  static void* align(void* p) { return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(p) + 63) / 64 * 64); }

  Options options_;
  Buffer weights_;
  std::vector<float> y_;
  std::vector<std::byte> scratch_storage_;
  std::byte* scratch_ = nullptr;
  int64_t group_bytes_ = 0, y_stride_ = 0;
  double read_ = 0, int8_peak_ = 0, float_peak_ = 0;
};

// False, and a line on stderr, for what it does not know.
bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--isa") {
      options.isa = value;
    } else if (name == "--type") {
      options.type = value;
    } else if (name == "--k") {
      options.k = std::atoll(value.c_str());
    } else if (name == "--threads") {
      options.threads = std::atoi(value.c_str());
    } else {
      options.threads = 0;
    }
  }
  if (argc % 2 == 1 && options.threads > 0 && options.k > 0 && options.k % 256 == 0) return true;
  std::fprintf(stderr, "usage: bench_kernels [--isa NAME] [--type NAME] [--k MULTIPLE_OF_256] [--threads N]\n");
  return false;
}

Status bench_kernels(const Options& options) {
  Ledger ledger;
  STOKER_TRY(Bench bench, Bench::create(options, ledger));
  bench.run();
  return Ok{};
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) {
  stoker::bench::Options options;
  if (!stoker::bench::parse(argc, argv, options)) return 2;
  const stoker::Status status = stoker::bench::bench_kernels(options);
  if (!status) std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
