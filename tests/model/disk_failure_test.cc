// Reads that fail while a model runs: the sequences that need what was not read fail, with the tensor's name.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "model/experts/file_reader.h"
#include "tests/base/temp_dir.h"
#include "tests/model/golden.h"

namespace stoker::model {
namespace {

using namespace testing;
using Texts = std::vector<std::vector<int32_t>>;

/// A part of a tensor: an expert's matrix, for one.
using Place = std::pair<std::string, uint64_t>;

/// Reads a file, keeps a log, and fails where it is told to.
class FaultyReader final : public ExpertReader {
 public:
  explicit FaultyReader(const gguf::File& file) : reader_(file, BulkReader::Cache::kFill, ReaderKind::kThreads, 8) {}
  Result<std::span<std::byte>> read(const ExpertRead& read) override {
    const gguf::TensorInfo& tensor = *read.tensor;
    {
      const MutexLock lock(mu_);
      log_.insert({tensor.name, read.begin});
      if (bad_ == Place{tensor.name, read.begin}) {
        return gguf::File::tensor_error({ErrorCode::kIo, "Input/output error"}, tensor, read.begin, read.bytes);
      }
    }
    auto bytes = reader_.read(read);
    const MutexLock lock(mu_);
    if (bytes && poisoned_ == Place{tensor.name, read.begin}) std::memset(bytes->data(), 0xff, bytes->size());
    return bytes;
  }
  /// F32 weights are then no numbers.
  void poison(const Place& place) {
    const MutexLock lock(mu_);
    poisoned_ = place;
  }
  std::string mode() const override { return "faulty"; }
  void fail_at(std::optional<Place> place) {
    const MutexLock lock(mu_);
    bad_ = std::move(place);
  }
  /// What has been read since the last call.
  std::set<Place> log() {
    const MutexLock lock(mu_);
    return std::exchange(log_, {});
  }

 private:
  FileReader reader_;
  mutable Mutex mu_;
  std::set<Place> log_ GUARDED_BY(mu_);
  std::optional<Place> bad_ GUARDED_BY(mu_), poisoned_ GUARDED_BY(mu_);
};

/// Sequences of a model, one text each, in one batch; of each the last row's logits.
struct Batched {
  std::vector<Sequence> sequences;
  std::vector<Span> batch;
  std::vector<Failure> failures;
  std::vector<std::vector<float>> logits;

  Batched(Loaded& loaded, const Texts& texts) {
    for (size_t i = 0; i < texts.size(); ++i) sequences.emplace_back(*loaded.kv);
    for (size_t i = 0; i < texts.size(); ++i) add(i, texts[i]);
    run(loaded);
  }
  /// Those of `which` again.
  void again(Loaded& loaded, const Texts& texts, const std::set<size_t>& which) {
    batch.clear();
    for (size_t i : which) add(i, texts[i]);
    run(loaded);
  }
  std::set<size_t> failed() const {
    std::set<size_t> spans;
    for (const Failure& failure : failures) spans.insert(failure.span);
    return spans;
  }

 private:
  void add(size_t i, const std::vector<int32_t>& tokens) {
    const auto n = static_cast<int64_t>(tokens.size());
    batch.push_back({.sequence = &sequences[i], .tokens = tokens, .logits = {n - 1, n}});
  }
  void run(Loaded& loaded) {
    const auto outputs = loaded.runner->forward(batch);
    ASSERT_TRUE(outputs) << outputs.error().message;
    failures = outputs->failures;
    logits.clear();
    for (int64_t i = 0; i < outputs->n_logits; ++i) {
      logits.emplace_back(outputs->logits_row(i), outputs->logits_row(i) + loaded.n_vocab());
    }
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

const Texts kTexts = {{1, 2, 3}, {40}, {5, 90, 17, 21}, {33, 7}, {101}, {9, 60, 61, 62, 63, 64}, {77, 12}};

/// All of `got`'s outputs but those of the failed spans are `want`'s.
void expect_others_unharmed(const Batched& got, const Batched& want) {
  const auto failed = got.failed();
  for (size_t i = 0; i < kTexts.size(); ++i) {
    const bool fine = !failed.contains(i);
    EXPECT_EQ(got.sequences[i].length(), fine ? static_cast<int64_t>(kTexts[i].size()) : 0) << i;
    EXPECT_TRUE(!fine || same_bits(got.logits[i], want.logits[i])) << i;
  }
}

/// The places of experts that some texts read, but not all.
std::map<Place, std::set<size_t>> read_by_some(Loaded& loaded, FaultyReader& reader) {
  std::map<Place, std::set<size_t>> readers;
  for (size_t i = 0; i < kTexts.size(); ++i) {
    reader.log();
    // Token by token, so that nothing is read ahead.
    Sequence sequence(*loaded.kv);
    for (const int32_t& token : kTexts[i]) {
      const bool last = &token == &kTexts[i].back();
      const Span span{
          .sequence = &sequence, .tokens = {&token, 1}, .position = sequence.length(), .logits = {0, last ? 1 : 0}};
      const auto outputs = loaded.runner->forward({&span, 1});
      EXPECT_TRUE(outputs && outputs->failures.empty());
    }
    for (const Place& place : reader.log()) readers[place].insert(i);
  }
  std::erase_if(readers, [](const auto& entry) { return entry.second.size() == kTexts.size(); });
  return readers;
}

class DiskFailure : public ::testing::TestWithParam<const char*> {};

TEST_P(DiskFailure, AnUnreadExpertFailsThoseWhoChoseIt) {
  const std::string path = tiny_path(GetParam());
  Loaded resident(path, {.isa = available_isas().back(), .threads = 2, .kv = kernels::KvType::kF16});
  const Batched want(resident, kTexts);
  const auto file = gguf::File::open(path);
  FaultyReader reader(*file);
  // Nothing stays in the cache, so that each choice is a read.
  Loaded loaded(*file, {.isa = available_isas().back(),
                        .threads = 2,
                        .kv = kernels::KvType::kF16,
                        .chunk_rows = 7,
                        .stream = true,
                        .experts = {.budget_bytes = 0, .reader = &reader}});
  const auto places = read_by_some(loaded, reader);
  ASSERT_GT(places.size(), 6u);
  size_t n = 0;
  for (const auto& [place, readers] : places) {
    if (n++ % (places.size() / 6) != 0) continue;
    reader.fail_at(place);
    Batched got(loaded, kTexts);
    EXPECT_EQ(got.failed(), readers) << place.first << " " << place.second;
    for (const Failure& failure : got.failures) {
      EXPECT_EQ(failure.code, ErrorCode::kIo);
      EXPECT_NE(failure.message.find(place.first), std::string::npos) << failure.message;
      EXPECT_NE(failure.message.find("Input/output error"), std::string::npos) << failure.message;
      EXPECT_LT(failure.position, static_cast<int64_t>(kTexts[failure.span].size()));
    }
    expect_others_unharmed(got, want);
    // Once the disk is well, so are they.
    reader.fail_at(std::nullopt);
    got.again(loaded, kTexts, readers);
    EXPECT_TRUE(got.failures.empty());
    size_t at = 0;
    for (size_t i : readers) EXPECT_TRUE(same_bits(got.logits[at++], want.logits[i])) << i;
  }
  const ExpertStore::Stats stats = loaded.model->experts()->stats();
  EXPECT_GT(stats.errors, 0u);
  EXPECT_EQ(stats.in_flight + stats.resident_bytes, 0u);
}

TEST_P(DiskFailure, OneFailureAndTheExpertIsReadAgain) {
  // With a cache for all: what has failed was not kept, all else was.
  const std::string path = tiny_path(GetParam());
  const auto file = gguf::File::open(path);
  FaultyReader reader(*file);
  const uint64_t all = Loaded(*file).model->expert_index().bytes();
  Loaded loaded(*file, {.stream = true, .experts = {.budget_bytes = all, .reader = &reader}});
  Batched probe(loaded, {kTexts[0]});
  const Place bad = *reader.log().begin();
  Loaded other(*file, {.stream = true, .experts = {.budget_bytes = all, .reader = &reader}});
  reader.fail_at(bad);
  EXPECT_FALSE(Batched(other, {kTexts[0]}).failures.empty());
  reader.fail_at(std::nullopt);
  EXPECT_TRUE(Batched(other, {kTexts[0]}).failures.empty());
  const auto stats = other.model->experts()->stats();
  EXPECT_EQ(stats.errors, 1u);
  EXPECT_EQ(stats.misses - 1, stats.resident_bytes / other.model->expert_index().layers[0].expert_bytes());
  EXPECT_EQ(stats.evictions, 0u);
}

/// In one step one expert cannot be read and another has weights that are no numbers: each text hears of its own.
TEST(DiskFailures, WhatIsUnreadAndWhatIsNotFiniteAreToldApart) {
  const auto file = gguf::File::open(tiny_path("olmoe"));
  FaultyReader reader(*file);
  Loaded loaded(*file, {.threads = 2, .stream = true, .experts = {.budget_bytes = 0, .reader = &reader}});
  const auto places = read_by_some(loaded, reader);
  const auto only = [](const std::set<size_t>& a, const std::set<size_t>& b) {
    std::set<size_t> rest;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(rest, rest.end()));
    return rest;
  };
  int n = 0;
  for (const auto& [unread, readers] : places) {
    for (const auto& [poisoned, others] : places) {
      if (n == 3 || unread.first != poisoned.first || only(readers, others).empty() || only(others, readers).empty())
        continue;
      ++n;
      reader.fail_at(unread);
      reader.poison(poisoned);
      const Batched got(loaded, kTexts);
      std::set<size_t> both = readers;
      both.insert(others.begin(), others.end());
      EXPECT_EQ(got.failed(), both);
      for (const Failure& failure : got.failures) {
        if (readers.contains(failure.span) && others.contains(failure.span)) continue;
        const bool never_read = readers.contains(failure.span);
        EXPECT_EQ(failure.code, never_read ? ErrorCode::kIo : ErrorCode::kCorrupt) << failure.message;
      }
    }
  }
  EXPECT_EQ(n, 3);
}

INSTANTIATE_TEST_SUITE_P(Tiny, DiskFailure, ::testing::Values("olmoe", "gpt-oss-mxfp4"), [](const auto& instance) {
  std::string text(instance.param);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
});

/// All units come from the disk.
struct Units {
  std::unique_ptr<gguf::File> file;
  FaultyReader reader;
  Loaded loaded;
  explicit Units(const std::string& path)
      : file(std::make_unique<gguf::File>(std::move(*gguf::File::open(path)))),
        reader(*file),
        loaded(*file, {.isa = available_isas().back(),
                       .threads = 2,
                       .kv = kernels::KvType::kF16,
                       .chunk_rows = 7,
                       .streams_unit = [](const Unit&) { return true; },
                       .ring_slots = 3,
                       .experts = {.reader = &reader}}) {}
  /// That nothing is leased, or being read, soon.
  bool idle() const {
    for (int i = 0; i < 1000; ++i) {
      const ExpertStore::Stats stats = loaded.model->unit_store()->stats();
      if (stats.in_flight + stats.resident_bytes == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
};

TEST(UnitFailure, AnUnreadMatrixFailsTheCallAndTheNextReadsAgain) {
  for (const char* name : {"llama-bias", "deepseek"}) {
    Loaded resident(tiny_path(name), {.isa = available_isas().back(), .threads = 2, .kv = kernels::KvType::kF16});
    const Batched want(resident, kTexts);
    const auto n_layers = resident.model->config().n_layers;
    std::set<size_t> all;
    for (size_t i = 0; i < kTexts.size(); ++i) all.insert(i);
    for (const std::string& tensor :
         {std::string("blk.0.attn_q.weight"), std::string("blk.0.ffn_down.weight"), std::string("blk.1.attn_v.weight"),
          "blk." + std::to_string(n_layers - 1) + ".attn_output.weight", std::string("output.weight")}) {
      Units units(tiny_path(name));  // that has read nothing ahead yet
      units.reader.fail_at(Place{tensor, 0});
      Batched got(units.loaded, kTexts);
      EXPECT_EQ(got.failed(), all) << tensor;
      for (const Failure& failure : got.failures) {
        EXPECT_EQ(failure.code, ErrorCode::kIo);
        EXPECT_NE(failure.message.find(tensor), std::string::npos) << failure.message;
      }
      expect_others_unharmed(got, want);
      EXPECT_TRUE(units.idle()) << tensor;
      units.reader.fail_at(std::nullopt);
      got.again(units.loaded, kTexts, all);
      EXPECT_TRUE(got.failures.empty());
      for (size_t i : all) EXPECT_TRUE(same_bits(got.logits[i], want.logits[i])) << tensor << ", " << i;
      EXPECT_GT(units.loaded.model->unit_store()->stats().errors, 0u);
    }
  }
}

TEST(UnitFailure, AnUnreadPartOfTheOutputMatrixFailsLogitsAlone) {
  using Rows = std::vector<std::vector<float>>;
  const auto run = [](Loaded& loaded, std::vector<Failure>& failures, Rows& hidden, Rows& logits) {
    Sequence first(*loaded.kv), second(*loaded.kv), third(*loaded.kv);
    const Span spans[] = {{.sequence = &first, .tokens = kTexts[0], .hidden = {0, 2}},
                          {.sequence = &second, .tokens = kTexts[1], .logits = {0, 1}},
                          {.sequence = &third, .tokens = kTexts[2], .hidden = {3, 4}}};
    const auto outputs = loaded.runner->forward(spans);
    ASSERT_TRUE(outputs);
    failures = outputs->failures;
    for (int64_t i = 0; i < outputs->n_hidden; ++i) {
      hidden.emplace_back(outputs->hidden_row(i), outputs->hidden_row(i) + loaded.model->config().dim);
    }
    for (int64_t i = 0; i < outputs->n_logits; ++i) {
      logits.emplace_back(outputs->logits_row(i), outputs->logits_row(i) + loaded.n_vocab());
    }
  };
  for (const char* name : {"llama-rows-1", "tied-q6_k"}) {
    Loaded resident(tiny_path(name), {.isa = available_isas().back(), .threads = 2, .kv = kernels::KvType::kF16});
    std::vector<Failure> failures;
    Rows want_hidden, want_logits, hidden, logits;
    run(resident, failures, want_hidden, want_logits);
    ASSERT_TRUE(failures.empty());
    Units units(tiny_path(name));
    const ExpertIndex::Layer& last = units.loaded.model->unit_store()->index().layers.back();
    EXPECT_GT(last.experts[0][0].begin, 0u) << name;  // there are several
    units.reader.fail_at(Place{last.experts[0][0].tensor->name, last.experts[0][0].begin});
    run(units.loaded, failures, hidden, logits);
    ASSERT_EQ(failures.size(), 1u) << name;
    EXPECT_EQ(failures[0].span, 1u);
    EXPECT_NE(failures[0].message.find(last.matrices[0]->name), std::string::npos) << failures[0].message;
    EXPECT_EQ(hidden, want_hidden) << name;
    EXPECT_TRUE(units.idle());
    units.reader.fail_at(std::nullopt);
    hidden.clear(), logits.clear();
    run(units.loaded, failures, hidden, logits);
    EXPECT_TRUE(failures.empty());
    EXPECT_EQ(logits, want_logits) << name;
  }
}

/// A read ahead that failed before the call that wants it is none of its business.
TEST(UnitFailure, WhatFailedBetweenCallsIsReadAgain) {
  Units units(tiny_path("llama-bias"));
  Batched first(units.loaded, kTexts);
  units.reader.fail_at(Place{"blk.0.attn_q.weight", 0});
  Sequence sequence(*units.loaded.kv);
  const auto one = [&] {
    const Span span{.sequence = &sequence, .tokens = {kTexts[1]}, .position = sequence.length(), .logits = {0, 1}};
    const auto outputs = units.loaded.runner->forward({&span, 1});
    return outputs && outputs->failures.empty();
  };
  static_cast<void>(one());  // it may have been read ahead by then
  const auto errors = [&] { return units.loaded.model->unit_store()->stats().errors; };
  for (int i = 0; errors() == 0 && i < 1000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GT(errors(), 0u);
  units.reader.fail_at(std::nullopt);
  EXPECT_TRUE(one());
}

TEST(UnitFailure, ACallIsCancelledBetweenLayers) {
  Loaded resident(tiny_path("llama-bias"), {.isa = available_isas().back(), .kv = kernels::KvType::kF16});
  const Batched want(resident, kTexts);
  Units units(tiny_path("llama-bias"));
  std::atomic<bool> cancel{false};
  int64_t last = -1;
  const Control control{.cancel = &cancel, .on_layer = [&](int64_t layer) {
                          EXPECT_GE(layer, last);
                          last = layer;
                          if (layer == 1) cancel = true;
                        }};
  Sequence sequence(*units.loaded.kv);
  const Span span{.sequence = &sequence, .tokens = kTexts[2], .logits = {3, 4}};
  const auto outputs = units.loaded.runner->forward({&span, 1}, nullptr, &control);
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(sequence.length(), 0);
  EXPECT_EQ(last, 1);
  EXPECT_TRUE(units.idle());
  const Batched got(units.loaded, kTexts);
  for (size_t i = 0; i < kTexts.size(); ++i) EXPECT_TRUE(same_bits(got.logits[i], want.logits[i])) << i;
}

/// `tensor`: a table of which each token reads a row.
void shorten_table(const std::string& name, const std::string& tensor) {
  const test::TempDir folder;
  const std::string path = folder / "shortened.gguf";
  std::filesystem::copy_file(tiny_path(name), path);
  const auto whole = std::filesystem::file_size(path);
  Loaded resident(path, {.kv = kernels::KvType::kF16});
  const Batched want(resident, kTexts);
  const auto file = gguf::File::open(path);
  Loaded loaded(*file, {.threads = 3, .kv = kernels::KvType::kF16, .chunk_rows = 5, .read_embedding = true});
  const gguf::TensorInfo& table = *file->find_tensor(tensor);
  const uint64_t row_bytes = table.bytes / static_cast<uint64_t>(table.shape[0]);
  std::filesystem::resize_file(path, table.offset + 60 * row_bytes + 7);  // token 60 has a part of its row
  Batched got(loaded, kTexts);
  EXPECT_EQ(got.failed(), (std::set<size_t>{2, 4, 5, 6}));
  for (const Failure& failure : got.failures) {
    const auto& tokens = kTexts[failure.span];
    const auto first = std::find_if(tokens.begin(), tokens.end(), [](int32_t token) { return token >= 60; });
    EXPECT_EQ(failure.position, first - tokens.begin());
    for (const std::string& word : {std::string("shortened.gguf"), tensor}) {
      EXPECT_NE(failure.message.find(word), std::string::npos) << failure.message;
    }
  }
  expect_others_unharmed(got, want);
  // The rest comes back.
  std::ofstream(path, std::ios::binary | std::ios::in) << std::ifstream(tiny_path(name), std::ios::binary).rdbuf();
  ASSERT_EQ(std::filesystem::file_size(path), whole);
  got.again(loaded, kTexts, {2, 4, 5, 6});
  EXPECT_TRUE(got.failures.empty());
  size_t at = 0;
  for (size_t i : {2, 4, 5, 6}) EXPECT_TRUE(same_bits(got.logits[at++], want.logits[i])) << i;
}

TEST(EmbeddingFailure, ARowBehindTheEndOfAShortenedFile) {
  shorten_table("llama-bias", "token_embd.weight");
  shorten_table("gemma4", "per_layer_token_embd.weight");
}

}  // namespace
}  // namespace stoker::model
