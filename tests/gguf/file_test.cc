#include "gguf/file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gguf/verify.h"
#include "gguf/writer.h"
#include "tests/gguf/raw.h"
#include "tests/gguf/temp_dir.h"

namespace stoker::gguf {
namespace {

using enum ErrorCode;

template <class T>
void expect_error(const Result<T>& result, ErrorCode code, std::initializer_list<std::string_view> words) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().message;
  for (std::string_view word : words)
    EXPECT_NE(result.error().message.find(word), std::string::npos) << word << " not in: " << result.error().message;
}

TEST(File, TypedLookUpsAreTolerantWhereTheValueIsTheSame) {
  Writer writer("llama");
  writer.add("u8", {ValueType::kU8, int64_t{7}});
  writer.add("i64", {ValueType::kI64, int64_t{-7}});
  writer.add("one", {ValueType::kU16, int64_t{1}});
  writer.add("f64", {ValueType::kF64, 0.25});
  writer.add_f32("f32", 0.5f);
  writer.add_bool("yes", true);
  writer.add_i32s("list", {1, 2});
  const std::string bytes = *writer.bytes();
  const Result<File> file = parse(bytes);
  ASSERT_TRUE(file) << file.error().message;

  EXPECT_EQ(**file->integer("u8"), 7);
  EXPECT_EQ(**file->integer("i64"), -7);
  EXPECT_EQ(**file->real("i64"), -7.0);
  EXPECT_EQ(**file->real("f64"), 0.25);
  EXPECT_EQ(**file->real("f32"), 0.5);
  EXPECT_TRUE(**file->boolean("yes"));
  EXPECT_TRUE(**file->boolean("one"));
  EXPECT_EQ(**file->string("general.architecture"), "llama");
  EXPECT_EQ((*file->array("list"))->ints, (std::vector<int64_t>{1, 2}));

  EXPECT_FALSE(*file->integer("none"));
  EXPECT_FALSE(*file->real("none"));
  EXPECT_FALSE(*file->boolean("none"));
  EXPECT_FALSE(*file->string("none"));
  EXPECT_EQ(*file->array("none"), nullptr);
  EXPECT_EQ(file->find("none"), nullptr);
  EXPECT_EQ(file->find_tensor("none"), nullptr);

  expect_error(file->integer("f32"), kCorrupt, {"test.gguf", "key 'f32' has type f32, wanted an integer"});
  expect_error(file->integer("yes"), kCorrupt, {"has type bool"});
  expect_error(file->real("list"), kCorrupt, {"array of i32, wanted a number"});
  expect_error(file->boolean("u8"), kCorrupt, {"key 'u8' is 7, wanted bool"});
  expect_error(file->boolean("f32"), kCorrupt, {"wanted bool"});
  expect_error(file->string("u8"), kCorrupt, {"has type u8, wanted string"});
  expect_error(file->array("u8"), kCorrupt, {"wanted an array"});
}

TEST(File, LooksUpAfterMoves) {
  const std::string bytes =
      Raw().header(1, 2).u32_key("a", 1).u32_key("b", 2).tensor("t", {1}, 0, 0).pad().zeros(4).bytes();
  std::vector<File> files;
  for (int i = 0; i < 20; ++i) files.push_back(std::move(*parse(bytes)));  // moves all of them several times
  File moved = std::move(files[3]);
  files.clear();
  EXPECT_EQ(**moved.integer("b"), 2);
  EXPECT_EQ(moved.find_tensor("t"), &moved.tensors()[0]);
}

TEST(File, ReadsOnlyInsideATensor) {
  Raw raw;
  raw.header(2, 0).tensor("a", {2}, 0, 0).tensor("b", {2}, 0, 32).pad();
  raw.number(1.f).number(2.f).pad().number(3.f).number(4.f);
  const Result<File> file = parse(raw.bytes());
  ASSERT_TRUE(file) << file.error().message;
  const TensorInfo& a = *file->find_tensor("a");
  std::byte out[16];
  EXPECT_TRUE(file->read_tensor(a, 0, std::span(out, 8)));
  EXPECT_TRUE(file->read_tensor(a, 8, std::span(out, 0)));
  expect_error(file->read_tensor(a, 0, std::span(out, 9)), kInvalidArgument, {"tensor 'a'", "it has 8 bytes"});
  expect_error(file->read_tensor(a, 9, std::span(out, 0)), kInvalidArgument, {"tensor 'a'"});
  expect_error(file->read_tensor(a, ~uint64_t{0}, std::span(out, 4)), kInvalidArgument, {"tensor 'a'"});
}

TEST(File, AFileThatShrinksWhileOpenFailsTheRead) {
  const TempDir dir;
  const std::string path = dir / "model.gguf";
  Writer writer("llama");
  const std::vector<std::byte> bytes(4096, std::byte{1});
  ASSERT_TRUE(writer.add_tensor("t", TensorType::kF32, {1024}, bytes));
  ASSERT_TRUE(writer.write(path));
  const Result<File> file = File::open(path);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->shards().size(), 1u);
  std::vector<std::byte> out(4096);
  EXPECT_TRUE(file->read_tensor(file->tensors()[0], 0, out));
  EXPECT_EQ(out, bytes);

  std::filesystem::resize_file(path, 2048);
  expect_error(file->read_tensor(file->tensors()[0], 0, out), kCorrupt, {"tensor 't'", "model.gguf"});
}

TEST(File, WhatCannotBeOpenedIsNamed) {
  const TempDir dir;
  expect_error(File::open(dir / "absent.gguf"), kNotFound, {"absent.gguf"});
  expect_error(File::open(dir / "."), kIo, {});
  std::ofstream(dir / "text.gguf") << "hello\n";
  expect_error(File::open(dir / "text.gguf"), kCorrupt, {"text.gguf: not a GGUF file: text"});
  std::ofstream(dir / "empty.gguf").flush();
  expect_error(File::open(dir / "empty.gguf"), kCorrupt, {"empty.gguf: not a GGUF file: it is empty"});
}

struct RealModel {
  std::string_view file;
  size_t n_tensors, n_tokens;
};

/// What tools/get-model fetches, where it puts it; files that are not there are passed over.
TEST(File, OpensRealModels) {
  constexpr RealModel kModels[] = {{"SmolLM2-135M-Instruct.Q4_1.gguf", 272, 49152},
                                   {"gemma-3-270m-q4_k_m.gguf", 236, 262144},
                                   {"qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 339, 151936}};
  const char* home = std::getenv("STOKER_HOME");
  const char* user = std::getenv("HOME");
  const std::string folder = home ? home : str_cat(user ? user : "", "/.cache/stoker");
  int n_opened = 0;
  for (const RealModel& model : kModels) {
    const std::string path = str_cat(folder, "/models/", model.file);
    if (!std::filesystem::exists(path)) continue;
    const Result<File> file = File::open(path);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->tensors().size(), model.n_tensors);
    EXPECT_EQ((*file->array("tokenizer.ggml.tokens"))->strings.size(), model.n_tokens);
    EXPECT_TRUE(file->notes().empty()) << file->notes()[0];
    EXPECT_LT(file->header_bytes(), 16u << 20);
    if (++n_opened > 1) continue;  // the data of the smallest are enough
    std::vector<std::byte> bytes;
    for (const TensorInfo& tensor : file->tensors()) {
      bytes.resize(tensor.bytes);
      ASSERT_TRUE(file->read_tensor(tensor, 0, bytes));
      const auto fault = verify_tensor(tensor.type(), bytes);
      EXPECT_FALSE(fault) << tensor.name << ", block " << fault->block << ": " << fault->reason;
    }
  }
  if (n_opened == 0) GTEST_SKIP() << "no models in " << folder << "/models";
}

}  // namespace
}  // namespace stoker::gguf
