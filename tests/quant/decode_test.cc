// Single bits of each layout, by hand: where the golden hashes say that something differs, these say what.
#include "quant/decode.h"

#include <gtest/gtest.h>

#include "quant/all.h"

namespace stoker::quant {
namespace {

constexpr uint16_t kOne = 0x3c00, kTwo = 0x4000;

template <class Type>
std::vector<float> decode(const typename Type::Block& block) {
  std::vector<float> out(Type::kWeights);
  decode_block<Type>(block, out.data());
  return out;
}

TEST(Decode, NibblesAreSplitInHalves) {
  Q4_0::Block block{.d = kTwo, .qs = {}};
  block.qs[3] = 0xf1;
  const auto w = decode<Q4_0>(block);
  EXPECT_EQ(w[3], 2.0f * (1 - 8));
  EXPECT_EQ(w[19], 2.0f * (15 - 8));
  EXPECT_EQ(w[4], 2.0f * -8);
}

TEST(Decode, OffsetIsAdded) {
  Q4_1::Block block{.d = kTwo, .m = kOne, .qs = {}};
  block.qs[0] = 0x30;
  EXPECT_EQ(decode<Q4_1>(block)[0], 1.0f);
  EXPECT_EQ(decode<Q4_1>(block)[16], 7.0f);
}

TEST(Decode, FifthBits) {
  Q5_0::Block block{.d = kOne, .qh = {0, 0, 0x02, 0}, .qs = {}};
  EXPECT_EQ(decode<Q5_0>(block)[17], 0.0f);
  EXPECT_EQ(decode<Q5_0>(block)[16], -16.0f);
}

TEST(Decode, Mxfp4IsAPowerOfTwoTimesFourBits) {
  MXFP4::Block block{.e = 127, .qs = {}};
  block.qs[0] = 0x7b;  // 11: -1.5, 7: 6
  EXPECT_EQ(decode<MXFP4>(block)[0], -1.5f);
  EXPECT_EQ(decode<MXFP4>(block)[16], 6.0f);
  EXPECT_EQ(MXFP4::scale_of(0), 0x1p-128f);
  EXPECT_EQ(MXFP4::scale_of(1), 0x1p-127f);
  EXPECT_EQ(MXFP4::scale_of(2), 0x1p-126f);
  EXPECT_EQ(MXFP4::scale_of(255), 0x1p127f);
}

TEST(Decode, Q2KBitPairs) {
  Q2K::Block block{};
  block.d = kOne;
  block.dmin = kTwo;
  block.scales[15] = 0x3f;     // weights 240 ... 255: scale 15, min 3
  block.qs[32 + 20] = 2 << 6;  // weight 128 + 96 + 20
  EXPECT_EQ(decode<Q2K>(block)[244], 15.0f * 2 - 2.0f * 3);
  EXPECT_EQ(decode<Q2K>(block)[245], -6.0f);
}

TEST(Decode, Q3KHighBitClearTakesFourOff) {
  Q3K::Block block{};
  block.d = kOne;
  block.scales[0] = 0x01;  // low bits of sub-block 0: 1; high bits 0: scale 1 - 32
  block.hmask[5] = 0x01;
  EXPECT_EQ(decode<Q3K>(block)[5], 0.0f);
  EXPECT_EQ(decode<Q3K>(block)[6], -31.0f * -4);
  block.scales[8] = 0x02;  // 2 as the high bits of sub-block 0: scale 33 - 32
  EXPECT_EQ(decode<Q3K>(block)[6], -4.0f);
}

TEST(Decode, SixBitPairs) {
  Q4K::Block block{};
  block.d = kOne;
  block.dmin = kOne;
  block.scales[1] = 0x80 | 5;   // scale 1 is 5; high bits 2 of scale 5
  block.scales[5] = 0xc0 | 9;   // min 1 is 9; high bits 3 of min 5
  block.scales[9] = 0x7a;       // low bits: scale 5 is 10 + 32, min 5 is 7 + 48
  block.qs[0 * 32 + 4] = 0xd0;  // weight 36: 13
  block.qs[2 * 32 + 4] = 0x30;  // weight 164: 3
  const auto w = decode<Q4K>(block);
  EXPECT_EQ(w[36], 5.0f * 13 - 9);
  EXPECT_EQ(w[164], 42.0f * 3 - 55);
}

TEST(Decode, Q5KFifthBits) {
  Q5K::Block block{};
  block.d = kOne;
  block.scales[2] = 1;
  block.qh[7] = 1 << 2;
  EXPECT_EQ(decode<Q5K>(block)[71], 16.0f);
}

TEST(Decode, Q6KFourPlusTwoBits) {
  Q6K::Block block{};
  block.d = kOne;
  std::fill_n(block.scales, 16, static_cast<int8_t>(-1));
  block.ql[64 + 32 + 9] = 0xc0;  // weight 128 + 96 + 9: low bits 12
  block.qh[32 + 9] = 0xc0;       // high bits 3
  EXPECT_EQ(decode<Q6K>(block)[233], -(12 + 48 - 32.0f));
  EXPECT_EQ(decode<Q6K>(block)[234], 32.0f);
}

TEST(Decode, Iq4Scales) {
  IQ4XS::Block block{};
  block.d = kOne;
  block.scales_l[1] = 0x50;     // sub-block 3: low bits 5
  block.scales_h = 2 << 6;      // high bits 2: scale 37 - 32
  block.qs[3 * 16 + 2] = 0x0f;  // weight 98: level 113, weight 114: level -127
  EXPECT_EQ(decode<IQ4XS>(block)[98], 5.0f * 113);
  EXPECT_EQ(decode<IQ4XS>(block)[114], 5.0f * -127);
}

}  // namespace
}  // namespace stoker::quant
