(* The contraction step of sets of matrices. *)
From Coq Require Import Ring.
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* Three identities, in any commutative ring. *)
Section Square.
Variables (A : Type) (zero one : A) (add mul sub : A -> A -> A) (opp : A -> A).
Variable theory : @ring_theory A zero one add mul sub opp eq.
Add Ring A_ring : theory.
Local Notation "0" := zero. Local Notation "1" := one.
Local Infix "+" := add. Local Infix "*" := mul. Local Infix "-" := sub.

(* What the square of the program's value leaves over. *)
Lemma square_left (d e Q : A) :
  (1 + d * e) * (1 + d * e) * ((1 + (e * e - 1) * Q) * (1 + (d * d - 1) * Q))
    - (d + e) * (d + e) * (1 + (d * d * (e * e) - 1) * Q)
  = (d * d - 1) * (e * e - 1) * (((1 + d * e) * Q - 1) * ((1 + d * e) * Q - 1)).
Proof. ring. Qed.

Lemma odds_left (P Q d e : A) :
  (1 + (e * e - 1) * P) * (1 + (d * d - 1) * Q)
  = 1 + (d * d - 1) * Q + (e * e - 1) * (P * (1 + (d * d - 1) * Q)).
Proof. ring. Qed.

Lemma odds_right (Q d e : A) :
  1 + (d * d - 1) * Q + (e * e - 1) * (d * d * Q) = 1 + (d * d * (e * e) - 1) * Q.
Proof. ring. Qed.

Lemma odds_middle (P Q D : A) :
  D * Q - P * (1 + (D - 1) * Q) = D * ((1 - P) * Q) - P * (1 - Q).
Proof. ring. Qed.

Lemma gathered (L m a P Q : A) :
  (1 - L) * m + (P - L * Q) * (a * m) = m * ((1 + a * P) - L * (1 + a * Q)).
Proof. ring. Qed.

End Square.

Section Theory.
Variable R : comRingType.
Lemma mathcomp_ring : @ring_theory R 0 1 +%R *%R (fun a b => a - b) -%R eq.
Proof.
split=> //; [exact: add0r | exact: addrC | exact: addrA | exact: mul1r | exact: mulrC
  | exact: mulrA | exact: mulrDl | exact: subrr].
Qed.
End Theory.

Section Contraction.
Variables (R : realFieldType) (S : finType) (p q u : S -> R) (d e : R).
Hypotheses (d1 : 1 <= d) (e1 : 1 <= e).
Hypotheses (p0 : forall z, 0 <= p z) (q0 : forall z, 0 <= q z).
Hypotheses (p1 : \sum_z p z = 1) (q1 : \sum_z q z = 1).
Hypothesis cross : forall z z', p z * q z' <= d ^+ 2 * (p z' * q z).
Hypotheses (u0 : forall z, 0 <= u z) (limits : forall z z', u z <= e ^+ 2 * u z').

Let L := ((1 + d * e) / (d + e)) ^+ 2.
Let d0 : 0 <= d. Proof. exact: le_trans ler01 d1. Qed.
Let e0 : 0 <= e. Proof. exact: le_trans ler01 e1. Qed.
Let de0 : 0 < d + e. Proof. by rewrite ltr_paddr // (lt_le_trans ltr01). Qed.

(* The upper set, where u takes the larger of its two values. *)
Let H : pred S := fun z => L * q z < p z.
Let PH := \sum_(z | H z) p z.
Let QH := \sum_(z | H z) q z.

Let PH0 : 0 <= PH. Proof. exact: sumr_ge0. Qed.
Let QH0 : 0 <= QH. Proof. exact: sumr_ge0. Qed.
Let sumC (r : S -> R) : \sum_z r z = 1 -> \sum_(z | ~~ H z) r z = 1 - \sum_(z | H z) r z.
Proof. by move=> <-; rewrite [in RHS](bigID H) /= addrAC subrr add0r. Qed.

Lemma odds : PH * (1 + (d * d - 1) * QH) <= d * d * QH.
Proof.
have le : PH * (1 - QH) <= d ^+ 2 * ((1 - PH) * QH).
  rewrite -!sumC // /PH /QH mulr_suml.
  under eq_bigr do rewrite mulr_sumr.
  rewrite [X in _ <= _ * X]mulrC mulr_suml mulr_sumr.
  apply: ler_sum => z _; rewrite !mulr_sumr; apply: ler_sum => z' _.
  by rewrite [q z * _]mulrC; exact: cross.
have id := odds_middle (mathcomp_ring R) PH QH (d * d).
rewrite expr2 in le; rewrite -subr_ge0.
by move: id => /= ->; rewrite subr_ge0.
Qed.

Lemma one_step : (d + e) ^+ 2 * (1 + (e * e - 1) * PH)
  <= (1 + d * e) ^+ 2 * (1 + (e * e - 1) * QH).
Proof.
have dd : 0 <= d * d - 1 by rewrite subr_ge0 mulr_ege1.
have ee : 0 <= e * e - 1 by rewrite subr_ge0 mulr_ege1.
have b0 : 0 < 1 + (d * d - 1) * QH by rewrite ltr_paddr ?ltr01 ?mulr_ge0.
rewrite -(ler_pmul2r b0) -[X in X <= _]mulrA -[X in _ <= X]mulrA.
have := odds_left (mathcomp_ring R) PH QH d e => /= ->.
apply: (@le_trans _ _ ((d + e) ^+ 2 * (1 + (d * d * (e * e) - 1) * QH))).
  apply: ler_wpmul2l; first by rewrite exprn_ge0 // ltW.
  have := odds_right (mathcomp_ring R) QH d e => /= <-.
  by rewrite ler_add2l ler_wpmul2l // odds.
rewrite -subr_ge0 !expr2.
have := square_left (mathcomp_ring R) d e QH => /= ->.
by apply: mulr_ge0; [exact: mulr_ge0 | rewrite -expr2 sqr_ge0].
Qed.

Theorem contraction : \sum_z p z * u z <= L * \sum_z q z * u z.
Proof.
have de1 : (d + e) ^+ 2 != 0 by rewrite expf_neq0 // gt_eqF.
have L1 : L * (1 + (e * e - 1) * QH) >= 1 + (e * e - 1) * PH.
  rewrite /L expr_div_n mulrAC ler_pdivl_mulr ?exprn_gt0 // [X in X <= _]mulrC; exact: one_step.
rewrite -subr_le0 mulr_sumr -sumrB.
(* the least value of u; above it u is between 1 and e^2 *)
have [z0 _|empty] := pickP (@predT S); last by rewrite big_pred0.
pose z := [arg min_(z < z0) u z]%O.
have least y : u z <= u y by rewrite /z; case: arg_minP => // w _; apply.
pose m := u z.
apply: (@le_trans _ _ (\sum_y (p y - L * q y) * (m + (if H y then (e * e - 1) * m else 0)))).
  apply: ler_sum => y _; rewrite [L * (_ * _)]mulrA -mulrBl.
  rewrite /H; case: ltP => [lt|ge].
    apply: ler_wpmul2l; first by rewrite subr_ge0 ltW.
    by rewrite mulrBl mul1r addrC subrK -expr2; exact: limits.
  by rewrite addr0; apply: ler_wnmul2l; rewrite ?subr_le0.
have -> : \sum_y (p y - L * q y) * (m + (if H y then (e * e - 1) * m else 0))
    = m * ((1 + (e * e - 1) * PH) - L * (1 + (e * e - 1) * QH)).
  under eq_bigr do rewrite mulrDr.
  rewrite big_split /= -mulr_suml sumrB p1 -mulr_sumr q1 mulr1.
  rewrite [X in _ + X](_ : _ = (PH - L * QH) * ((e * e - 1) * m)); last first.
    rewrite /PH /QH mulr_sumr -sumrB mulr_suml [RHS]big_mkcond.
    by apply: eq_bigr => y _; case: ifP; rewrite ?mulr0.
  exact: (gathered (mathcomp_ring R)).
by rewrite mulr_ge0_le0 ?u0 // subr_le0.
Qed.

End Contraction.

(* Every sequence of matrices from a set, with one number for all pairs. *)
Section Box.
Variables (R : realFieldType) (S : finType) (K : nat -> S -> S -> R).
Variables (D : seq S -> seq S -> R) (f : nat -> S -> S -> R) (g : nat -> R).
Hypotheses (K0 : forall j x z, 0 <= K j x z) (K1 : forall j x, \sum_z K j x z = 1).
Hypothesis chg : charges D f g.
Variables (F d e : nat -> R).
Hypotheses (d1 : forall m, 1 <= d m) (e1 : forall j, 1 <= e j).
Hypothesis roots : forall j, g j * F j <= e j ^+ 2.
Hypothesis cross : forall m j x x' z z', steps K m j x z * steps K m j x' z'
  <= d m ^+ 2 * (steps K m j x z' * steps K m j x' z).
Hypothesis F0 : 1 <= F 0%N.
Hypothesis step : forall k, exists m j, k = (m + j)%N /\
  (\prod_(j.+1 <= i < (m + j).+1) g i) * ((1 + d m * e j) / (d m + e j)) ^+ 2 <= F k.+1.

Lemma steps_ge0 m j x z : 0 <= steps K m j x z.
Proof. by elim: m x => [|m IH] x //=; apply: sumr_ge0 => y _; rewrite mulr_ge0. Qed.

Lemma steps_sum m j x : \sum_z steps K m j x z = 1.
Proof.
elim: m x => [|m IH] x //=; rewrite exchange_big /= -[RHS](K1 (m.+1 + j) x).
by apply: eq_bigr => y _; rewrite -mulr_sumr IH mulr1.
Qed.

Lemma F_ge0 k : 0 <= F k.
Proof.
case: k => [|k]; first exact: le_trans ler01 F0.
have [m [j [_ le]]] := step k; apply: le_trans le; rewrite mulr_ge0 ?sqr_ge0 //.
by apply: prodr_ge0 => i _; exact: (charge_most_ge0 chg).
Qed.

Lemma box_support : support K (fun=> 1 : R) (fun=> predT).
Proof. by split=> // _; exact: ler01. Qed.

Lemma box_recursion :
  recursion K (fun=> 1) f g (fun=> predT) (fun k _ _ => F k) (fun _ _ _ => true).
Proof.
move=> k x x' _ _ _ _; split; first exact: F_ge0.
case: k => [|k]; first by left; rewrite /by_total big_geq //= !mulr1.
have [m [j [kmj le]]] := step k; rewrite kmj in le *; right; exists m, j; split=> // u [u0 limits].
apply: le_trans (ler_wpmul2r _ le); last first.
  by apply: sumr_ge0 => z _; rewrite mulr_ge0 ?steps_ge0.
rewrite -mulrA; apply: ler_wpmul2l.
  by apply: prodr_ge0 => i _; exact: (charge_most_ge0 chg).
apply: (contraction (d1 m) (e1 j)) => //; try by move=> *; rewrite ?steps_ge0 ?steps_sum.
move=> z z'; have [<-|ne] := eqVneq z z'.
  by rewrite ler_pemull // expr2 mulr_ege1.
apply: le_trans (limits z z' isT isT ne isT) _; apply: ler_wpmul2r => //.
by apply: le_trans (roots j); apply: ler_wpmul2r; [exact: F_ge0 | exact: (charge_most chg)].
Qed.

Theorem box k x x' h : x != x' -> nonnegative k h -> moves_by D k h ->
  beyond K (fun=> 1) k x h <= F k * beyond K (fun=> 1) k x' h.
Proof. by move=> ne; exact: (side_bound box_support chg box_recursion). Qed.

End Box.
