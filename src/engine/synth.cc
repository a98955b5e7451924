#include "engine/synth.h"

#include <algorithm>
#include <utility>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/mutex.h"
#include "base/output_file.h"
#include "base/str_cat.h"
#include "engine/synth_header.h"
#include "engine/synth_plan.h"

namespace stoker::engine {
namespace {

std::string name_of(const SynthPlan& plan) {
  const SynthOptions& o = plan.options;
  std::string name = o.shape;
  if (o.n_layers != plan.shape->n_layers) name += str_cat("-", o.n_layers, "l");
  name += str_cat("-", o.type);
  if (o.seed != SynthOptions{}.seed) name += str_cat("-seed", o.seed);
  return o.zipf > 0 ? str_cat(name, "-zipf", o.zipf) : name;
}

Result<std::string> header_of(const SynthPlan& plan) {
  gguf::Writer writer(plan.shape->arch);
  writer.add_string("general.name", str_cat(plan.options.shape, ", random weights"));
  writer.add_bool(kSynthKey, true);
  writer.add_u32(str_cat(kSynthKey, ".seed"), plan.options.seed);
  writer.add_f32(str_cat(kSynthKey, ".zipf"), static_cast<float>(plan.options.zipf));
  add_synth_keys(writer, *plan.shape, plan.options.n_layers);
  add_synth_vocabulary(writer, *plan.shape);
  for (const SynthTensor& tensor : plan.tensors)
    STOKER_TRY_STATUS(writer.declare_tensor(tensor.name, tensor.type, tensor.shape));
  return writer.header();
}

/// The threads' side of a write: each makes and stores chunks until all are there, or one has failed.
class ChunkWriter {
 public:
  ChunkWriter(const SynthPlan& plan, const OutputFile& file, uint64_t begin)
      : plan_(plan), file_(file), begin_(begin) {}

  const std::function<void(uint64_t)>* on_bytes = nullptr;
  const std::atomic<bool>* cancel = nullptr;

  void run(Range chunks, std::span<std::byte> buffer) {
    for (int64_t chunk = chunks.begin; chunk < chunks.end && !stopped_; ++chunk) {
      if (cancel && *cancel) return stop(Error{ErrorCode::kCancelled, "cancelled"});
      const SynthTensor& tensor = tensor_of(chunk);
      const Range rows = tensor.rows_of(chunk);
      const uint64_t at = begin_ + tensor.offset + static_cast<uint64_t>(rows.begin) * tensor.row_bytes;
      const size_t n_bytes = static_cast<size_t>(rows.size()) * tensor.row_bytes;
      const std::span<std::byte> bytes = buffer.subspan(at % OutputFile::kDirect, n_bytes);
      plan_.fill(tensor, chunk, bytes);
      auto status = file_.write_at(at, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      if (!status) return stop(status.error());
      if (*on_bytes) (*on_bytes)(bytes.size());
    }
  }

  Status status() {
    const MutexLock lock(mu_);
    return status_;
  }

 private:
  const SynthTensor& tensor_of(int64_t chunk) const {
    const auto after = std::upper_bound(plan_.tensors.begin(), plan_.tensors.end(), chunk,
                                        [](int64_t c, const SynthTensor& t) { return c < t.first_chunk; });
    return *std::prev(after);
  }

  void stop(const Error& error) {
    const MutexLock lock(mu_);
    if (!stopped_.exchange(true)) status_ = error;
  }

  const SynthPlan& plan_;
  const OutputFile& file_;
  const uint64_t begin_;
  std::atomic<bool> stopped_{false};
  Mutex mu_;
  Status status_ GUARDED_BY(mu_) = Ok{};
};

uint64_t largest_chunk(const SynthPlan& plan) {
  uint64_t most = 0;
  for (const SynthTensor& tensor : plan.tensors)
    most = std::max(most, std::min(tensor.bytes(), static_cast<uint64_t>(tensor.rows_per_chunk()) * tensor.row_bytes));
  return most;
}

}  // namespace

Synth::Synth(std::unique_ptr<const SynthPlan> plan) : plan_(std::move(plan)) {}
Synth::Synth(Synth&&) noexcept = default;
Synth& Synth::operator=(Synth&&) noexcept = default;
Synth::~Synth() = default;

Result<Synth> Synth::plan(SynthOptions options) {
  STOKER_TRY(auto plan, SynthPlan::make(std::move(options)));
  return Synth(std::move(plan));
}

std::string Synth::name() const { return name_of(*plan_); }
uint64_t Synth::tensor_bytes() const { return plan_->bytes; }
int64_t Synth::n_parameters() const { return plan_->n_parameters; }
Result<std::string> Synth::header() const { return header_of(*plan_); }

Status Synth::write(const std::string& path, Pool& pool, Ledger& ledger, const std::function<void(uint64_t)>& on_bytes,
                    const std::atomic<bool>* cancel) const {
  STOKER_TRY(OutputFile file, OutputFile::create(path));
  uint64_t begin = 0;
  {
    STOKER_TRY(const Charge charge, ledger.charge("vocabulary", synth_vocabulary_bytes(*plan_->shape)));
    STOKER_TRY(const std::string header, header_of(*plan_));
    begin = header.size();
    STOKER_TRY_STATUS(file.reserve(begin + plan_->bytes));
    STOKER_TRY_STATUS(file.write_at(0, header));
  }
  const uint64_t per_thread = round_up(largest_chunk(*plan_), OutputFile::kDirect) + OutputFile::kDirect;
  STOKER_TRY(const Buffer buffers,
             Buffer::allocate(ledger, "synth buffers", per_thread * static_cast<uint64_t>(pool.size())));
  ChunkWriter writer(*plan_, file, begin);
  writer.on_bytes = &on_bytes;
  writer.cancel = cancel;
  pool.run([&](Worker& worker) {
    const auto own = buffers.bytes().subspan(static_cast<size_t>(worker.index()) * per_thread, per_thread);
    worker.each(plan_->n_chunks, 1, [&](Range chunks) { writer.run(chunks, own); });
  });
  STOKER_TRY_STATUS(writer.status());
  // Where no room could be reserved, the zeros behind the last tensor are still missing.
  STOKER_TRY_STATUS(file.set_size(begin + plan_->bytes));
  return file.commit();
}

bool is_synthetic(const gguf::File& file) {
  const auto flag = file.boolean(kSynthKey);
  return flag && flag->value_or(false);
}

}  // namespace stoker::engine
