// Layers whose state has a fixed size: a short convolution, then a recurrence, token by token. Work is split over
// sequences and heads, so the order within a head is that of its tokens, however these come.
#include <algorithm>
#include <cstring>

#include "model/exec.h"

namespace stoker::model {
namespace {

constexpr int64_t kHeadPiecesPerWorker = 4;

template <class T>
T* floats_at(T* state, int64_t offset) noexcept {
  return state ? state + offset / static_cast<int64_t>(sizeof(float)) : nullptr;
}
const float* from_of(const RowSpan& span, int64_t offset) noexcept {
  return floats_at(reinterpret_cast<const float*>(span.state), offset);
}
float* to_of(const RowSpan& span, int64_t offset) noexcept {
  return floats_at(reinterpret_cast<float*>(span.next_state), offset);
}

/// f(span, item) for so many items of every span.
template <class F>
void each_item(const Exec& exec, Worker& worker, int64_t n_items, F&& f) {
  const int64_t n = static_cast<int64_t>(exec.spans.size()) * n_items;
  const int64_t piece = std::max<int64_t>(1, n / (worker.count() * kHeadPiecesPerWorker));
  worker.each(n, piece, [&](Range range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      f(exec.spans[static_cast<size_t>(i / n_items)], i % n_items);
    }
  });
}

/// Channels of one head: convolved, and q and k divided by their length.
struct ConvolvedHead {
  const ConvPart* conv;
  int64_t channel;  ///< In the part.
  int64_t column, dim;
  float scale = 0;  ///< Of the normed vector; 0: it is not normed.
};

ConvolvedHead convolved_head(const RecurrentSpec& r, int64_t item) noexcept {
  // rms_norm divides by the root of the mean square, which is the length over the root of the size.
  const float one = 1.0f / __builtin_sqrtf(static_cast<float>(r.k_dim));
  const float q_scale = r.scan ? 0 : one * one, k_scale = r.scan ? 0 : one;
  int64_t head = item;
  if (head < r.n_key_heads) return {&r.q_conv, head * r.k_dim, r.q.of(head), r.k_dim, q_scale};
  head -= r.n_key_heads;
  if (head < r.n_key_heads) return {&r.k_conv, head * r.k_dim, r.k.of(head), r.k_dim, k_scale};
  head -= r.n_key_heads;
  return {&r.v_conv, head * r.v_dim, r.v.of(head), r.v_dim};
}

void convolve_head(const RecurrentSpec& r, const Exec& exec, const RowSpan& span, const ConvolvedHead& head) noexcept {
  const int64_t stride = exec.stride(Buf::kQkv), in_state = head.conv->in_state + head.channel;
  float* x = exec.row(Buf::kQkv, span.row0) + head.column;
  const float* from = from_of(span, r.layout.conv_offset);
  exec.table->convolve({.taps = static_cast<int>(r.taps),
                        .n_channels = head.dim,
                        .w = head.conv->w->data + head.conv->in_w + head.channel,
                        .w_stride = head.conv->w->n / r.taps,
                        .bias = head.conv->bias ? head.conv->bias->data + head.conv->in_w + head.channel : nullptr,
                        .silu = true,
                        .from = from ? from + in_state : nullptr,
                        .to = to_of(span, r.layout.conv_offset) + in_state,
                        .state_stride = r.conv_channels(),
                        .x = x,
                        .stride = stride,
                        .n = span.n});
  if (head.scale == 0) return;
  const float eps = exec.plan->config->norm_eps / static_cast<float>(head.dim);
  for (int64_t t = 0; t < span.n; ++t, x += stride) {
    exec.table->rms_norm(x, nullptr, eps, head.dim, x);
    exec.table->scale(x, head.scale, head.dim, x);
  }
}

/// beta of all heads, and their decay where it is one number, in place.
void finish_gates(const RecurrentSpec& r, const Exec& exec, const RowSpan& span) noexcept {
  const kernels::Table& t = *exec.table;
  for (int64_t row = span.row0; row < span.row0 + span.n; ++row) {
    for (int64_t head = 0; head < r.n_heads; head += r.beta.group) {
      float* beta = exec.row(Buf::kQkv, row) + r.beta.of(head);
      if (r.scan) {
        t.add(beta, r.b_decay->data + head, r.beta.group, beta);
        t.softplus(beta, r.beta.group, beta);
        continue;
      }
      t.sigmoid(beta, r.beta.group, beta);
      if (r.row_decay) continue;
      float* decay = exec.row(Buf::kQkv, row) + r.decay.of(head);
      t.add(decay, r.b_decay->data + head, r.beta.group, decay);
      t.softplus(decay, r.beta.group, decay);
      t.exp_mul(decay, r.decay_a->data + head, r.beta.group, decay);
    }
  }
}

/// What the kernel reads of up to kRecurTokens tokens, one after the other.
struct HeadInputs {
  float *q, *k, *w, *g;
  float beta[kernels::kRecurTokens];
};

void fill(const RecurrentSpec& r, const Exec& exec, int64_t head, Range rows, HeadInputs& in) noexcept {
  const int64_t key_head = r.key_head_of(head), n = r.k_dim;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const float* row = exec.row(Buf::kQkv, rows.begin + i);
    const float* decay = row + r.decay.of(head);  // of a scan it follows from the step
    in.beta[i] = row[r.beta.of(head)];
    std::memcpy(in.q + i * n, row + r.q.of(key_head), static_cast<size_t>(n) * sizeof(float));
    std::memcpy(in.k + i * n, row + r.k.of(key_head), static_cast<size_t>(n) * sizeof(float));
    float *g = in.g + i * n, *w = in.w + i * n;
    if (r.scan) {
      exec.table->exp_mul(&in.beta[i], r.decay_a->data + head, 1, g);
      std::fill_n(g, n, *g);
    } else if (r.row_decay) {
      exec.table->add(decay, r.b_decay->data + head * n, n, g);
      if (r.decay_bound != 0) {
        exec.table->scale(g, -r.decay_a->data[head], n, g);
        exec.table->sigmoid(g, n, g);
      } else {
        exec.table->softplus(g, n, g);
      }
      std::fill_n(w, n, r.decay_bound != 0 ? r.decay_bound : r.decay_a->data[head]);
      exec.table->exp_mul(g, w, n, g);
    } else {
      std::fill_n(g, n, *decay);
    }
    exec.table->mul(in.k + i * n, g, n, w);
  }
}

void recur_head(const Step& step, const Exec& exec, const RowSpan& span, int64_t head, float* scratch) noexcept {
  const RecurrentSpec& r = step.recurrent;
  const kernels::Table& t = *exec.table;
  const int64_t each = kernels::kRecurTokens * r.k_dim, at = head * r.k_dim * r.v_dim;
  HeadInputs in{.q = scratch, .k = scratch + each, .w = scratch + 2 * each, .g = scratch + 3 * each, .beta = {}};
  const float* from = from_of(span, r.layout.state_offset);
  float* const to = to_of(span, r.layout.state_offset) + at;
  if (from) from += at;
  for (int64_t begin = span.row0; begin < span.row0 + span.n; begin += kernels::kRecurTokens) {
    const Range rows{begin, std::min(span.row0 + span.n, begin + kernels::kRecurTokens)};
    fill(r, exec, head, rows, in);
    float* out = exec.row(Buf::kAttended, begin) + head * r.v_dim;
    t.recur({.k_dim = r.k_dim,
             .v_dim = r.v_dim,
             .delta = !r.scan,
             .from = from,
             .to = to,
             .q = in.q,
             .k = in.k,
             .w = in.w,
             .g = in.g,
             .v = exec.row(Buf::kQkv, begin) + r.v.of(head),
             .v_stride = exec.stride(Buf::kQkv),
             .beta = in.beta,
             .out = out,
             .out_stride = exec.stride(Buf::kAttended),
             .n = rows.size()});
    from = to;
    for (int64_t row = rows.begin; row < rows.end; ++row, out += exec.stride(Buf::kAttended)) {
      // Here, since a row that wants no output is never quantized, but its state lives on.
      if (!t.all_finite(out, r.v_dim)) exec.mark_bad(exec.original_row(row), step);
      if (r.scan) {
        t.add_scaled(r.skip->data[head], exec.row(Buf::kQkv, row) + r.v.of(head), r.v_dim, out);
      } else {
        t.rms_norm(out, r.norm->data, exec.plan->config->norm_eps, r.v_dim, out);
      }
      const float* gate = exec.row(Buf::kQkv, row) + r.gate.of(head);
      (r.sigmoid_gate ? t.sigmoid_mul : t.silu_mul)(gate, out, r.v_dim, out);
    }
  }
}

}  // namespace

void convolve_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const RecurrentSpec& r = step.recurrent;
  const int64_t n_heads = 2 * r.n_key_heads + r.n_heads;
  each_item(exec, worker, n_heads + 1, [&](const RowSpan& span, int64_t item) {
    if (item < n_heads) {
      convolve_head(r, exec, span, convolved_head(r, item));
    } else {
      finish_gates(r, exec, span);
    }
  });
}

void recur_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  auto* scratch = reinterpret_cast<float*>(exec.worker_scratch(worker));
  each_item(exec, worker, step.recurrent.n_heads,
            [&](const RowSpan& span, int64_t head) { recur_head(step, exec, span, head, scratch); });
}

void short_convolve_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  constexpr int64_t kChannels = 256;  // of a piece of work
  const RecurrentSpec& r = step.recurrent;
  const kernels::Table& t = *exec.table;
  const int64_t dim = r.v_dim;
  each_item(exec, worker, (dim + kChannels - 1) / kChannels, [&](const RowSpan& span, int64_t item) {
    const int64_t first = item * kChannels, n = std::min(kChannels, dim - first);
    const auto row_at = [&](int64_t row) { return exec.row(Buf::kQkv, row) + first; };
    for (int64_t row = span.row0; row < span.row0 + span.n; ++row)
      t.mul(row_at(row), row_at(row) + 2 * dim, n, row_at(row));
    const float* from = from_of(span, r.layout.conv_offset);
    t.convolve({.taps = static_cast<int>(r.taps),
                .n_channels = n,
                .w = r.v_conv.w->data + first,
                .w_stride = dim,
                .bias = nullptr,
                .silu = false,
                .from = from ? from + first : nullptr,
                .to = to_of(span, r.layout.conv_offset) + first,
                .state_stride = dim,
                .x = row_at(span.row0),
                .stride = exec.stride(Buf::kQkv),
                .n = span.n});
    for (int64_t row = span.row0; row < span.row0 + span.n; ++row) {
      if (!t.all_finite(row_at(row), n)) exec.mark_bad(exec.original_row(row), step);
      t.mul(row_at(row), row_at(row) + dim, n, exec.row(Buf::kAttended, row) + first);
    }
  });
}

void group_norm_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const RecurrentSpec& r = step.recurrent;
  const int64_t group = r.n_heads * r.v_dim / r.n_key_heads;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t i = 0; i < r.n_key_heads; ++i) {
      float* x = exec.row(step.in, row) + i * group;
      exec.table->rms_norm(x, r.norm->data + i * group, exec.plan->config->norm_eps, group, x);
    }
  }
  quantize_rows(step, exec, rows.begin, rows.end);
  if (worker.index() == 0) point_activations(step, exec);
}

}  // namespace stoker::model
