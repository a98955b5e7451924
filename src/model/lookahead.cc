#include "model/lookahead.h"

#include <algorithm>
#include <utility>

namespace stoker::model {

Lookahead::Lookahead(const Plan& plan) : plan_(plan) {
  const Router none;
  Router router;
  const Step* last_norm = nullptr;
  for (const Step& step : plan.steps) {
    if (step.run == norm_step) last_norm = &step;
    for (const Target& target : targets_of(step)) {
      if (target.out == Buf::kRouter && target.column == 0) router.product = &target, router.norm = last_norm;
    }
    if (step.run != experts_step) continue;
    router.moe = &step.moe;
    routers_.push_back(std::exchange(router, none));
  }
  normed_.resize(static_cast<size_t>(plan.config->dim) + 16);
  logits_.resize(static_cast<size_t>(plan.row_floats[static_cast<size_t>(Buf::kRouter)]) + 16);
  quantized_.resize(static_cast<size_t>(quantized_bytes(plan.forms, plan.max_k, 1)) + 64);
  chosen_.resize(static_cast<size_t>(plan.moe.n_used));
  guessed_.reserve(static_cast<size_t>(plan.moe.n_used * kMostRows));
}

namespace {

template <class T>
T* aligned(T* p) noexcept {
  return p + (64 - reinterpret_cast<uintptr_t>(p) % 64) % 64 / sizeof(T);
}

}  // namespace

float* Lookahead::logits() noexcept { return aligned(logits_.data()); }

void Lookahead::find_logits(const Router& router, const Exec& exec, int64_t r, std::byte* scratch) noexcept {
  const kernels::Table& t = *plan_.table;
  const int64_t dim = plan_.config->dim;
  float* const normed = aligned(normed_.data());
  norm_row(plan_, *router.norm, exec.row(Buf::kResidual, r), normed);
  uint8_t bad = 0;
  const Quantize job{.x = normed,
                     .stride = dim,
                     .n = 1,
                     .k = dim,
                     .forms = router.norm->forms,
                     .to = place_tables(router.norm->forms, dim, 1, aligned(quantized_.data())),
                     .bad = &bad};
  quantize(t, job, 0, 1);
  const Target& product = *router.product;
  multiply({.target = product,
            .groups = {0, product.w->n_groups()},
            .run = {0, product.w->n_groups()},
            .x = activations_of(job),
            .row_begin = 0,
            .row_end = 1,
            .y = logits(),
            .y_stride = 0,
            .data = product.w->data},
           scratch);
  add_vector(t, router.moe->router_bias, logits());
}

Lookahead::Sight Lookahead::sight(size_t index) const noexcept {
  if (index >= routers_.size()) return Sight::kNone;
  if (routers_[index].moe->routing.expert_of_token) return Sight::kToken;
  return routers_[index].norm ? Sight::kRouter : Sight::kNone;
}

std::span<const int32_t> Lookahead::guess(size_t index, const Exec& exec, std::byte* scratch) noexcept {
  guessed_.clear();
  const Sight sees = sight(index);
  if (sees == Sight::kNone || exec.n_rows > kMostRows || exec.n_rows != exec.experts->n_rows) return guessed_;
  const Router& router = routers_[index];
  for (int64_t r = 0; r < exec.n_rows; ++r) {
    if (sees == Sight::kRouter) find_logits(router, exec, r, scratch);
    choose_experts(logits(), *router.moe, exec.tokens[exec.token(r)], chosen_.data());
    for (const int32_t expert : chosen_) {
      if (std::find(guessed_.begin(), guessed_.end(), expert) == guessed_.end()) guessed_.push_back(expert);
    }
  }
  return guessed_;
}

}  // namespace stoker::model
