#include "tests/model/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gguf/file.h"

namespace stoker::model::testing {
namespace {

template <class T>
T must(Result<T> result, const std::string& what) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), result.error().message.c_str());
    std::abort();
  }
  return std::move(*result);
}

/// Puts the rows of a call where they belong.
class Collector final : public LogitsConsumer {
 public:
  Collector(std::vector<std::vector<float>>& out, int64_t n_vocab) : out_(out), n_vocab_(n_vocab) {}
  int64_t base = 0;
  void consume(const LogitsBlock& block, Worker& worker) noexcept override {
    if (worker.index() != 0) return;
    for (int64_t i = 0; i < block.n; ++i) {
      const float* row = block.logits + i * block.stride;
      out_[static_cast<size_t>(base + block.first + i)].assign(row, row + n_vocab_);
    }
  }

 private:
  std::vector<std::vector<float>>& out_;
  int64_t n_vocab_;
};

}  // namespace

std::string tiny_path(const std::string& name) { return std::string(STOKER_TINY_DIR) + "/" + name + ".gguf"; }

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(STOKER_GOLDEN_DIR "/tiny"))
    names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

Golden read_golden(const std::string& name) {
  std::ifstream in(std::string(STOKER_GOLDEN_DIR) + "/tiny/" + name + ".json");
  const auto json = nlohmann::json::parse(in);
  Golden golden;
  golden.name = name;
  golden.context = json.value("ctx", 0);
  golden.tokens = json.at("tokens").get<std::vector<int32_t>>();
  golden.logprobs = json.at("logprobs").get<std::vector<double>>();
  const auto& llama_cpp = json.at("llama_cpp");  // empty: it does not run this model
  if (!llama_cpp.empty()) golden.llama_cpp = llama_cpp.at("f32_kv").at("mean_abs").get<double>();
  golden.truncated_logprobs = json.value("truncated_logprobs", std::vector<double>());
  for (const auto& position : json.at("top")) {
    auto& row = golden.top.emplace_back();
    for (const auto& entry : position) row.emplace_back(entry.at(0).get<int32_t>(), entry.at(1).get<double>());
  }
  return golden;
}

Loaded::Loaded(const std::string& path, const Setup& setup)
    : own_file(std::make_unique<gguf::File>(must(gguf::File::open(path), path))) {
  load(*own_file, setup);
}

Loaded::Loaded(const gguf::File& file, const Setup& setup) { load(file, setup); }

void Loaded::load(const gguf::File& file, const Setup& setup) {
  const std::string& path = file.path();
  pool = must(Pool::create({.n_threads = setup.threads, .nodes = setup.nodes}), path);
  const kernels::Table* table = setup.table ? setup.table : must(kernels::table_for(setup.isa), path);
  model = must(Model::prepare(
                   file, {.overrides = setup.overrides, .context = setup.context, .kv_type = setup.kv, .table = table}),
               path);
  Residency residency{.stream_experts = setup.stream,
                      .read_embedding = setup.stream || setup.read_embedding,
                      .ring_slots = setup.ring_slots};
  for (const Unit& unit : model->units()) residency.units.push_back(setup.streams_unit && setup.streams_unit(unit));
  must(model->read(file, ledger, *pool, {.residency = residency, .experts = setup.experts}), path);
  kv = must(
      KvPool::create(
          ledger, model->plan().kv,
          {.n_pages = (setup.positions + 63) / 64, .n_states = setup.n_states, .scatter_seed = setup.scatter_seed}),
      path);
  const Runner::Options options{.max_rows = setup.max_rows,
                                .chunk_rows = setup.chunk_rows,
                                .experts = model->experts(),
                                .lookahead = setup.lookahead,
                                .units = model->unit_store(),
                                .embedding = model->embedding_reader(),
                                .layer_inputs = model->layer_input_reader()};
  runner = must(Runner::create(model->plan(), *pool, ledger, options), path);
}

std::vector<std::vector<float>> all_logits(Loaded& loaded, std::span<const int32_t> tokens, int64_t chunk) {
  std::vector<std::vector<float>> out(tokens.size());
  Collector collector(out, loaded.n_vocab());
  Sequence sequence(*loaded.kv);
  const auto n = static_cast<int64_t>(tokens.size());
  for (int64_t at = 0; at < n; at += chunk) {
    const int64_t rows = std::min(chunk, n - at);
    collector.base = at;
    const Span span{.sequence = &sequence,
                    .tokens = tokens.subspan(static_cast<size_t>(at), static_cast<size_t>(rows)),
                    .position = at,
                    .logits = {0, rows}};
    const Outputs outputs = must(loaded.runner->forward({&span, 1}, &collector), "forward");
    for (const Failure& failure : outputs.failures) std::fprintf(stderr, "%s\n", failure.message.c_str());
  }
  return out;
}

double logprob(const std::vector<float>& logits, int32_t id) {
  const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (float x : logits) sum += std::exp(static_cast<double>(x) - largest);
  return static_cast<double>(logits[static_cast<size_t>(id)]) - largest - std::log(sum);
}

}  // namespace stoker::model::testing
