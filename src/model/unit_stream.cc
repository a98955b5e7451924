#include "model/unit_stream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stoker::model {
namespace {

bool multiplies(const Step& step, const ExpertIndex::Layer& unit) {
  for (int i = 0; i < step.n_targets; ++i) {
    const Matrix* w = step.targets[static_cast<size_t>(i)].w;
    if (std::find(unit.matrices.begin(), unit.matrices.end(), w) != unit.matrices.end()) return true;
  }
  return false;
}

}  // namespace

UnitStream::UnitStream(const Plan& plan, ExpertStore& store) : store_(store) {
  for (const ExpertIndex::Layer& unit : store.index().layers) {
    const auto is_part = [&](const Target& part) { return part.w == unit.matrices[0]; };
    if (std::any_of(plan.head_parts.begin(), plan.head_parts.end(), is_part)) {
      steps_.push_back({plan.steps.size(), plan.steps.size()});
      continue;
    }
    Steps steps{.first = kNone};
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      if (!multiplies(plan.steps[i], unit)) continue;
      steps = {.first = std::min(steps.first, i), .last = i};
    }
    STOKER_CHECK(steps.first != kNone);
    steps_.push_back(steps);
    n_of_layers_ = steps_.size();
  }
  for (int64_t i = 0; i < store.n_slots(); ++i) ring_.push_back({.request = std::make_unique<ExpertRequest>(store)});
}

void UnitStream::ask(Place& place, Turn turn) {
  static constexpr int32_t kOnly = 0;
  place.turn = turn;
  place.request->start(turn.unit, {&kOnly, 1}, {}, ExpertRequest::Order::kByExpert);
}

/// After the last turn of a call comes the first of another like it.
UnitStream::Turn UnitStream::after(Turn turn) const {
  const size_t next = turn.unit + 1;
  if (turn.unit < n_of_layers_) {
    if (next < n_units_) return {next};
    return n_passes_ > 0 ? Turn{n_of_layers_} : first();
  }
  if (next < steps_.size()) return {next, turn.pass};
  return turn.pass + 1 < n_passes_ ? Turn{n_of_layers_, turn.pass + 1} : first();
}

/// What was asked for ahead is kept where it is wanted, and was read.
void UnitStream::begin_call(size_t n_steps, size_t n_output_passes) {
  failed_ = false;
  const auto wanted = [&](const Steps& steps) { return steps.first < n_steps; };
  const auto end = steps_.begin() + static_cast<int64_t>(n_of_layers_);
  n_units_ = static_cast<size_t>(std::count_if(steps_.begin(), end, wanted));
  n_passes_ = n_of_layers_ < steps_.size() ? n_output_passes : 0;
  if (n_units_ == 0 && n_passes_ == 0) return;
  Turn turn = first();
  for (size_t i = 0; i < ring_.size(); ++i, turn = after(turn)) {
    Place& place = ring_[(front_ + i) % ring_.size()];
    if (place.turn.unit == turn.unit && !place.request->failed(0)) {
      place.turn = turn;
      continue;
    }
    place.request->finish();
    ask(place, turn);
  }
}

void UnitStream::acquire() { front().lease = front().request->take(ExpertRequest::Take::kWait); }

void UnitStream::release() {
  Place& place = front();
  place.request->release(place.lease);
  Turn next = place.turn;
  for (size_t i = 0; i < ring_.size(); ++i) next = after(next);
  ask(place, next);
  front_ = (front_ + 1) % ring_.size();
}

void UnitStream::end_call(bool well) {
  if (well) return;
  for (Place& place : ring_) {
    place.request->finish();
    place.turn = {};
  }
}

const std::byte* UnitStream::wait(const Matrix& w) noexcept {
  const std::vector<const Matrix*>& all = store_.index().layers[front().turn.unit].matrices;
  const auto m = static_cast<size_t>(std::find(all.begin(), all.end(), &w) - all.begin());
  const std::byte* data = front().request->wait(front().lease, m);
  if (!data) failed_.store(true, std::memory_order_relaxed);
  return data;
}

}  // namespace stoker::model
