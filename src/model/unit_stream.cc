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
    Steps steps{.first = kNone};
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      if (!multiplies(plan.steps[i], unit)) continue;
      steps = {.first = std::min(steps.first, i), .last = i};
    }
    STOKER_CHECK(steps.first != kNone);
    steps_.push_back(steps);
  }
  for (int64_t i = 0; i < store.n_slots(); ++i) ring_.push_back({.request = std::make_unique<ExpertRequest>(store)});
}

void UnitStream::ask(Place& place, size_t unit) {
  static constexpr int32_t kOnly = 0;
  place.unit = unit;
  place.request->start(unit, {&kOnly, 1}, {}, ExpertRequest::Order::kByExpert);
}

/// What was asked for ahead is kept where it is wanted, and was read.
void UnitStream::begin_call(size_t n_steps) {
  failed_ = false;
  const auto wanted = [&](const Steps& steps) { return steps.first < n_steps; };
  n_units_ = static_cast<size_t>(std::count_if(steps_.begin(), steps_.end(), wanted));
  if (n_units_ == 0) return;
  size_t unit = 0;
  for (size_t i = 0; i < ring_.size(); ++i, unit = after(unit)) {
    Place& place = ring_[(front_ + i) % ring_.size()];
    if (place.unit == unit && !place.request->failed(0)) continue;
    place.request->finish();
    ask(place, unit);
  }
}

void UnitStream::acquire() { front().lease = front().request->take(ExpertRequest::Take::kWait); }

void UnitStream::release() {
  Place& place = front();
  place.request->release(place.lease);
  size_t next = place.unit;
  for (size_t i = 0; i < ring_.size(); ++i) next = after(next);
  ask(place, next);
  front_ = (front_ + 1) % ring_.size();
}

void UnitStream::end_call(bool well) {
  if (well) return;
  for (Place& place : ring_) {
    place.request->finish();
    place.unit = kNone;
  }
}

const std::byte* UnitStream::wait(const Matrix& w) noexcept {
  const std::vector<const Matrix*>& all = store_.index().layers[front().unit].matrices;
  const auto m = static_cast<size_t>(std::find(all.begin(), all.end(), &w) - all.begin());
  const std::byte* data = front().request->wait(front().lease, m);
  if (!data) failed_.store(true, std::memory_order_relaxed);
  return data;
}

}  // namespace stoker::model
