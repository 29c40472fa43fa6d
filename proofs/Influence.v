(* Quilts: Theorem 1 of the influence curve, and the subadditivity of the curve. *)
From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Quilt.
Variables (R : realFieldType) (X N Q Z : finType) (mu M : X -> N -> Q -> Z -> R) (c I : R).
Variables (x x' : X).
Let joint y q r := \sum_n mu y n q r.
Let node_quilt y q := \sum_r joint y q r.
Let node y := \sum_q node_quilt y q.
Let quilt_rest q r := \sum_y joint y q r.
Let quilt q := \sum_r quilt_rest q r.
Let likelihood y := \sum_n \sum_q \sum_r mu y n q r * M y n q r.
Hypotheses (mu0 : forall y n q r, 0 <= mu y n q r) (M0 : forall y n q r, 0 <= M y n q r).
Hypotheses (c0 : 0 <= c) (I0 : 0 <= I).
Hypothesis separates : forall y q r, joint y q r * quilt q = node_quilt y q * quilt_rest q r.
Hypothesis influence : forall q, node_quilt x q * node x' <= I * (node_quilt x' q * node x).
Hypothesis nearby : forall n n' q r, M x n q r <= c * M x' n' q r.
Hypotheses (px : 0 < node x) (px' : 0 < node x').

Let joint0 y q r : 0 <= joint y q r. Proof. exact: sumr_ge0. Qed.
Let nq0 y q : 0 <= node_quilt y q. Proof. exact: sumr_ge0. Qed.
Let qr0 q r : 0 <= quilt_rest q r. Proof. exact: sumr_ge0. Qed.
Let quilt0 q : 0 <= quilt q. Proof. exact: sumr_ge0. Qed.

Lemma joint_le q r : joint x q r * node x' <= I * (joint x' q r * node x).
Proof.
have [z|nz] := eqVneq (quilt q) 0.
  have : joint x q r = 0.
    have /eqP := z; rewrite psumr_eq0 // => /allP /(_ r (mem_index_enum _)) /= /eqP zr.
    have /eqP := zr; rewrite psumr_eq0 // => /allP /(_ x (mem_index_enum _)) /= /eqP //.
  by move=> ->; rewrite mul0r !mulr_ge0 // ltW.
have q0 : 0 < quilt q by rewrite lt_neqAle eq_sym nz quilt0.
have e1 : joint x q r * node x' * quilt q = node_quilt x q * node x' * quilt_rest q r.
  by rewrite mulrAC separates mulrAC.
have e2 : I * (joint x' q r * node x) * quilt q
    = I * (node_quilt x' q * node x) * quilt_rest q r.
  by rewrite -!(mulrA I); congr (_ * _); rewrite mulrAC separates mulrAC.
by rewrite -(ler_pmul2r q0) e1 e2 ler_wpmul2r.
Qed.

(* Given x, q and r the nearby set is one average and given x' another. *)
Lemma average q r :
  (\sum_n mu x n q r * M x n q r) * joint x' q r
    <= c * ((\sum_n mu x' n q r * M x' n q r) * joint x q r).
Proof.
rewrite /joint mulr_suml; under eq_bigr do rewrite mulr_sumr.
rewrite [X in _ <= c * X]mulr_suml.
under [X in _ <= c * X]eq_bigr do rewrite mulr_sumr.
rewrite [X in _ <= c * X]exchange_big /= mulr_sumr; apply: ler_sum => n _.
rewrite mulr_sumr; apply: ler_sum => n' _.
have sw a b d : c * (a * b * d) = d * a * (c * b).
  by rewrite [a * b * d]mulrC mulrCA [c * (a * b)]mulrCA mulrA.
rewrite sw; rewrite mulrAC; apply: ler_wpmul2l; first exact: mulr_ge0.
exact: nearby.
Qed.

Lemma sum2_mul (F : Q -> Z -> R) z :
  (\sum_q \sum_r F q r) * z = \sum_q \sum_r F q r * z.
Proof. by rewrite mulr_suml; apply: eq_bigr => q _; rewrite mulr_suml. Qed.

Theorem quilt_bound : likelihood x / node x <= c * I * (likelihood x' / node x').
Proof.
have likelihoodE y : likelihood y = \sum_q \sum_r \sum_n mu y n q r * M y n q r.
  by rewrite /likelihood exchange_big /=; apply: eq_bigr => q _; rewrite exchange_big.
rewrite ler_pdivr_mulr // mulrA mulrAC ler_pdivl_mulr // !likelihoodE.
rewrite sum2_mul [c * I * _]mulrC -mulrA sum2_mul.
apply: ler_sum => q _; apply: ler_sum => r _; have := joint_le q r; have := average q r.
set s := \sum_n _; set s' := \sum_n _ => le1 le2.
have s0 : 0 <= s' by apply: sumr_ge0 => n _; exact: mulr_ge0.
have [z|nz] := eqVneq (joint x' q r) 0.
  have jx : joint x q r = 0.
    apply/eqP; rewrite eq_le joint0 andbT -(ler_pmul2r px') mul0r.
    by apply: le_trans le2 _; rewrite z mul0r mulr0.
  have -> : s = 0.
    apply: big1 => n _; have /eqP := jx; rewrite psumr_eq0 //.
    by move=> /allP /(_ n (mem_index_enum _)) /= /eqP ->; rewrite mul0r.
  by rewrite mul0r !mulr_ge0 // ltW.
have j0 : 0 < joint x' q r by rewrite lt_neqAle eq_sym nz joint0.
rewrite -(ler_pmul2r j0) mulrAC.
apply: le_trans (ler_wpmul2r (ltW px') le1) _.
have -> : s' * (c * I * node x) * joint x' q r = c * (s' * (I * (joint x' q r * node x))).
  by rewrite -!mulrA mulrCA [node x * _]mulrC.
by rewrite -!mulrA !ler_wpmul2l.
Qed.

End Quilt.

Section Curve.
Variables (R : realFieldType) (Q : finType) (size infl : Q -> R) (f : R -> R).
Hypothesis infl0 : forall A, 0 <= infl A.
Hypothesis least : forall x, 0 <= x ->
  (forall A, f x <= size A * x + infl A) /\ (exists A, f x = size A * x + infl A).
Hypothesis f0 : forall x, 0 <= x -> 0 <= f x.

Lemma scaled x y : 0 <= x -> 0 <= y -> x * f (x + y) <= (x + y) * f x.
Proof.
move=> x0 y0; have [_ [A ->]] := least x0; have [le _] := least (addr_ge0 x0 y0).
apply: le_trans (ler_wpmul2l x0 (le A)) _.
rewrite (mulrDr x) (mulrDr (x + y)).
have -> : (x + y) * (size A * x) = x * (size A * (x + y)).
  by rewrite mulrC [size A * x]mulrC -mulrA.
by rewrite ler_add2l ler_wpmul2r // ler_addl.
Qed.

Theorem subadditive x y : 0 <= x -> 0 <= y -> f (x + y) <= f x + f y.
Proof.
move=> x0 y0; have [/eqP|pos] := boolP (x + y == 0).
  move=> /eqP; rewrite paddr_eq0 // => /andP[/eqP -> /eqP ->].
  by rewrite addr0 ler_addl f0.
have xy : 0 < x + y by rewrite lt_neqAle eq_sym pos addr_ge0.
rewrite -(ler_pmul2l xy) mulrDr [X in X <= _]mulrDl; apply: ler_add; first exact: scaled.
by rewrite addrC; exact: scaled.
Qed.

End Curve.
