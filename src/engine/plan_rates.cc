#include "engine/plan_rates.h"

#include <algorithm>

#include "kernels/table.h"

namespace stoker::engine {
namespace {

// What products reach of memory's usual rate and, where kernels were not measured, of the instruction's peak.
constexpr double kOfRead = 0.85, kOfPeak = 0.6;
// The inner products of attention, of the peak of f32.
constexpr double kAttentionOfPeak = 0.35;
// Norms, rotations, activations and quantizing, beside the products of many rows.
constexpr double kOfProducts = 0.12;
// What the store gets of the disk's rate: a layer's few experts are soon read, and each time the last lanes are alone.
constexpr double kOfDisk = 0.8;
// What packing moves of each byte: out of the window, and into the slot, whose lines are fetched before they are
// written.
constexpr double kPackedBytes = 3;
// From the router's choice to the first read, while all processors multiply (docs/expert-store.md#measured).
constexpr double kStartSeconds = 1.1e-3;
constexpr double kStepSeconds = 2.5e-6;

bool is_float(gguf::TensorType type) { return kernels::activation_form(type) == kernels::ActForm::kF32; }

double weights_per_byte(gguf::TensorType type) {
  const auto info = gguf::type_info(static_cast<uint32_t>(type));
  return info ? static_cast<double>(info->n_weights) / static_cast<double>(info->n_bytes) : 1;
}

/// Of one part of a call, with all that it needs in memory.
PassTime part_time(const CallTraffic::Part& part, const MachineRates& rates) {
  PassTime t;
  double bytes = part.kv_bytes + part.embedding_bytes;
  for (const CallTraffic::Product& p : part.products) {
    double seconds = p.bytes * rates.seconds_per_byte(p.type, p.rows);
    if (p.rows > 16) seconds *= 1 + kOfProducts;
    (p.of_experts ? t.experts : t.dense) += seconds;
    bytes += p.bytes;
    t.arithmetic += p.operations / (is_float(p.type) ? rates.float_ops : rates.int8_ops);
  }
  t.memory = bytes / rates.read;
  t.attention = std::max(part.kv_bytes / (kOfRead * rates.steady_read),
                         part.attention_operations / (kAttentionOfPeak * rates.float_ops));
  t.steps = kStepSeconds * static_cast<double>(part.n_steps);
  return t;
}

/// What was foreseen of the missed experts comes while the steps before them are at work, the rest beside the experts
/// that are there.
double part_total(const PassTime& part, PassReads::Experts missed, const MachineRates& rates, bool spare) {
  const double reading = missed.bytes / rates.disk / kOfDisk;
  const double packing = spare ? 0 : kPackedBytes * missed.bytes / rates.steady_read;
  const double late = 1 - missed.foreseen, start = spare ? 0 : kStartSeconds * std::min(1.0, late * missed.n);
  const double besides = part.dense + part.attention + part.steps;
  return std::max(reading, besides + std::max(part.experts + packing, start + late * reading));
}

}  // namespace

const char* bound_name(Bound bound) {
  return bound == Bound::kDisk ? "disk" : bound == Bound::kMemory ? "memory" : "arithmetic";
}

MachineRates MachineRates::guess(Isa isa, int threads) {
  double int8 = 100e9, f32 = 40e9;
  if (isa == Isa::kScalar) int8 = 10e9, f32 = 8e9;
  if (isa == Isa::kAvxVnni) int8 = 200e9;
  if (isa == Isa::kAvx512) int8 = 400e9, f32 = 100e9;
  if (isa == Isa::kAmx) int8 = 800e9, f32 = 100e9;
  return {.read = std::min(15e9 * threads, 60e9),
          .steady_read = std::min(10e9 * threads, 40e9),
          .int8_ops = int8 * threads,
          .float_ops = f32 * threads,
          .disk = 1e9};
}

/// Between the counts of rows that were measured the time lies on a line, beyond the last on one through zero: more
/// rows are so many times that many.
double MachineRates::kernel_seconds_per_byte(gguf::TensorType type, double rows) const {
  const Kernel *before = nullptr, *after = nullptr;
  for (const Kernel& k : kernels) {
    if (k.type != type || k.bytes <= 0) continue;
    if (static_cast<double>(k.rows) <= rows) before = &k;
    if (!after && static_cast<double>(k.rows) >= rows) after = &k;
  }
  if (before && after && before != after) {
    const auto a = static_cast<double>(before->rows), b = static_cast<double>(after->rows);
    return 1 / before->bytes + (1 / after->bytes - 1 / before->bytes) * (rows - a) / (b - a);
  }
  if (before) return std::max(1.0, rows / static_cast<double>(before->rows)) / before->bytes;
  if (after) return 1 / after->bytes;
  return 2 * rows * weights_per_byte(type) / (kOfPeak * (is_float(type) ? float_ops : int8_ops));
}

/// Kernels are measured in short pieces, which see memory at its best: a token takes long enough to see it as it is,
/// and waits for that much longer.
double MachineRates::seconds_per_byte(gguf::TensorType type, double rows) const {
  const double usual = 1 / (kOfRead * steady_read);
  return std::max(usual, kernel_seconds_per_byte(type, rows) + usual - 1 / read);
}

double PassTime::least() const { return std::max({disk, memory, arithmetic}); }

Bound PassTime::bound() const {
  if (disk >= memory && disk >= arithmetic) return Bound::kDisk;
  return memory >= arithmetic ? Bound::kMemory : Bound::kArithmetic;
}

PassTime pass_time(const CallTraffic& traffic, const MachineRates& rates, const PassReads& reads) {
  PassTime t;
  for (size_t i = 0; i < traffic.parts.size(); ++i) {
    const PassTime part = part_time(traffic.parts[i], rates);
    t.dense += part.dense, t.experts += part.experts, t.attention += part.attention, t.steps += part.steps;
    t.memory += part.memory, t.arithmetic += part.arithmetic;
    const PassReads::Experts missed = i < reads.experts.size() ? reads.experts[i] : PassReads::Experts{};
    t.disk += missed.bytes / rates.disk;
    t.total += part_total(part, missed, rates, reads.spare);
  }
  if (reads.n_units > 0) {
    // The disk has no pause between units, nor between calls; only the first one of all has nothing beside it.
    const double units = reads.unit_bytes / rates.disk, reads_all = t.disk / kOfDisk + units;
    t.total = std::max(t.total, reads_all) + std::min(t.total, reads_all) / reads.n_units;
    t.disk += units;
  }
  return t;
}

}  // namespace stoker::engine
