(* One side of a time point: everything that lies in one direction of it.

   Lists run outwards: the head is the next node, the last element is the end of
   the series. A node with k nodes beyond it has depth k. The right side of a chain
   has the kernels P and the boundary value 1, the left side the transposed kernels
   and the law of the first node; both are instances of what follows. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Minimum.
Variables (R : realFieldType) (A : finType) (a0 : A).
Implicit Type F : A -> R.

Definition minimum F : R := F [arg min_(a < a0) F a]%O.

Lemma minimum_le F a : minimum F <= F a.
Proof. by rewrite /minimum; case: arg_minP => // b _; apply. Qed.

Lemma le_minimum F c : (forall a, c <= F a) -> c <= minimum F.
Proof. by move=> lec; apply: lec. Qed.

End Minimum.

Section Theory.
Variables (R : realFieldType) (S : finType).
Variables (K : nat -> S -> S -> R) (e : S -> R).
Variables (D : seq S -> seq S -> R) (f : nat -> S -> S -> R) (g : nat -> R).
Variable occurs : nat -> pred S.
Hypothesis sup : support K e occurs.
Hypothesis chg : charges D f g.
Implicit Types (h : seq S -> R) (x y z : S) (s : seq S) (k m : nat).

Local Notation W := (beyond K e).

Lemma beyond_le k x h1 h2 :
  (forall s, size s = k -> h1 s <= h2 s) -> W k x h1 <= W k x h2.
Proof.
elim: k x h1 h2 => [|k IH] x h1 h2 le12 /=.
  by rewrite ler_wpmul2l ?(boundary_ge0 sup) ?le12.
apply: ler_sum => z _; rewrite ler_wpmul2l ?(step_ge0 sup) //.
by apply: IH => s sz; apply: le12; rewrite /= sz.
Qed.

Lemma beyond_eq k x h1 h2 :
  (forall s, size s = k -> h1 s = h2 s) -> W k x h1 = W k x h2.
Proof.
by move=> eq12; apply/eqP; rewrite eq_le !beyond_le // => s sz; rewrite eq12.
Qed.

Lemma beyond_scale k x c h : W k x (fun s => c * h s) = c * W k x h.
Proof.
elim: k x h => [|k IH] x h /=; first by rewrite mulrCA.
by rewrite mulr_sumr; apply: eq_bigr => z _; rewrite IH mulrCA.
Qed.

Lemma beyond_ge0 k x h : nonnegative k h -> 0 <= W k x h.
Proof.
move=> h0; have -> : 0 = W k x (fun=> 0 * 0).
  by rewrite (beyond_scale k x 0 (fun=> 0)) mul0r.
by apply: beyond_le => s sz; rewrite mulr0; exact: h0.
Qed.

Lemma beyond_impossible k x h : ~~ occurs k x -> W k x h = 0.
Proof.
elim: k x h => [|k IH] x h no /=; first by rewrite (occurs0 sup) ?mul0r.
rewrite big1 // => z _; have [occ|nocc] := boolP (occurs k z).
  by rewrite (occursS sup no occ) mul0r.
by rewrite IH ?mulr0.
Qed.

Lemma beyond_drop m k x h :
  W (m + k).+1 x (fun s => h (drop m s))
    = \sum_(z | occurs k z) steps K m k x z * W k z (fun r => h (z :: r)).
Proof.
rewrite [RHS](_ : _ = \sum_z steps K m k x z * W k z (fun r => h (z :: r))); last first.
  rewrite [RHS](bigID (occurs k)) /= [X in _ = _ + X]big1 ?addr0 // => z no.
  by rewrite beyond_impossible ?mulr0.
elim: m x => [|m IH] x; first by rewrite /= add0n.
rewrite addSn [LHS]/=.
transitivity (\sum_y K (m + k).+1 x y *
   (\sum_z steps K m k y z * W k z (fun r => h (z :: r)))).
  by apply: eq_bigr => y _; rewrite -IH.
under eq_bigr do rewrite mulr_sumr.
rewrite exchange_big; apply: eq_bigr => z _ /=.
by rewrite mulr_suml; apply: eq_bigr => y _; rewrite mulrA addSn.
Qed.

(* The largest function below h, whatever the first m nodes are, that moves by D. *)
Definition envelope m k (a0 : (m + k).-tuple S) h s : R :=
  minimum a0 (fun a : (m + k).-tuple S => D s (drop m a) * h a).

Lemma size_drop_tuple m k (a : (m + k).-tuple S) : size (drop m a) = k.
Proof. by rewrite size_drop size_tuple addKn. Qed.

Lemma envelope_le m k a0 h b s : size b = m -> size s = k ->
  @envelope m k a0 h s <= h (b ++ s).
Proof.
move=> sb ss; have sbs : size (b ++ s) == (m + k)%N by rewrite size_cat sb ss.
have := minimum_le a0 (fun a : (m + k).-tuple S => D s (drop m a) * h a) (Tuple sbs).
by rewrite /= drop_size_cat // (charge_refl chg) mul1r.
Qed.

Lemma envelope_moves m k a0 h : nonnegative (m + k) h ->
  moves_by D k (@envelope m k a0 h).
Proof.
move=> h0 s s' ss ss'; rewrite {2}/envelope /minimum.
set a := [arg min_(a < a0) _]%O.
apply: le_trans (minimum_le _ _ a) _; rewrite mulrA.
rewrite ler_wpmul2r ?h0 ?size_tuple //.
by apply: (charge_triangle chg); rewrite ?size_drop_tuple ?ss ?ss'.
Qed.

Lemma envelope_ge0 m k a0 h : nonnegative (m + k) h ->
  nonnegative k (@envelope m k a0 h).
Proof.
move=> h0 s _; apply: le_minimum => a.
by rewrite mulr_ge0 ?(charge_ge0 chg) ?h0 ?size_tuple.
Qed.

Lemma le_envelope m k a0 h (c C : R) s : 0 <= C ->
  (forall b s', size b = m -> size s' = k -> c <= C * D s s' * h (b ++ s')) ->
  c <= C * @envelope m k a0 h s.
Proof.
move=> C0 lec; rewrite /envelope /minimum; set a := [arg min_(a < a0) _]%O.
rewrite mulrA -{2}(cat_take_drop m a); apply: lec; last exact: size_drop_tuple.
by rewrite size_takel // size_tuple leq_addr.
Qed.

Lemma charge_cat b b' s s' : size b = size b' -> size s = size s' ->
  D (b ++ s) (b' ++ s')
    <= (\prod_(size s <= j < size b + size s) g j) * D s s'.
Proof.
elim: b b' => [|z b IH] [|z' b'] //= => [_ _|[sb] ss].
  by rewrite add0n big_geq // mul1r.
have sbs : size (b ++ s) = size (b' ++ s') by rewrite !size_cat sb ss.
apply: le_trans (charge_cons chg z z' sbs) _.
apply: le_trans (ler_wpmul2r (charge_ge0 chg _ _) (charge_most chg _ z z')) _.
rewrite size_cat addSn big_nat_recr ?leq_addl //= mulrAC.
rewrite [X in _ <= X]mulrC.
by apply: (ler_wpmul2l (charge_most_ge0 chg _)); rewrite IH.
Qed.

Variables (F : nat -> S -> S -> R) (finite : nat -> rel S).
Hypothesis rec : recursion K e f g occurs F finite.

(* The bounds of the recursion hold. *)
Theorem side_bound k x x' h :
  occurs k x -> occurs k x' -> x != x' -> finite k x x' ->
  nonnegative k h -> moves_by D k h -> W k x h <= F k x x' * W k x' h.
Proof.
elim/ltn_ind: k x x' h => k IH x x' h occ occ' neq fin h0 hD.
have [F0 [tot|[m [j [kmj step]]]]] := rec occ occ' neq fin.
  set G := \prod_(0 <= j < k) g j in tot.
  have G0 : 0 <= G by apply: prodr_ge0 => j _; exact: (charge_most_ge0 chg).
  (* h lies between its least value and G times that *)
  pose a0 := [tuple of nseq k x]; pose c := minimum a0 (fun a : k.-tuple S => h a).
  have c0 : 0 <= c by apply: le_minimum => a; rewrite h0 ?size_tuple.
  have cle s : size s = k -> c <= h s.
    by move=> /eqP ss; exact: (minimum_le a0 (fun a : k.-tuple S => h a) (Tuple ss)).
  have hle s : size s = k -> h s <= G * c.
    move=> ss; rewrite /c /minimum; set a := [arg min_(a < a0) _]%O.
    have sa : size s = size a by rewrite size_tuple.
    apply: le_trans (hD s a ss (size_tuple a)) _.
    apply: ler_wpmul2r; first by rewrite h0 ?size_tuple.
    have /= := charge_cat sa (erefl (size (Nil S))).
    by rewrite !cats0 addn0 ss (charge_refl chg) mulr1.
  apply: (@le_trans _ _ (W k x (fun=> G * c * 1))).
    by apply: beyond_le => s ss; rewrite mulr1 hle.
  rewrite (beyond_scale k x (G * c) (fun=> 1)) mulrAC.
  apply: le_trans (ler_wpmul2r c0 tot) _; rewrite -mulrA ler_wpmul2l //.
  rewrite mulrC -beyond_scale; apply: beyond_le => s ss; rewrite mulr1; exact: cle.
rewrite {k}kmj in IH occ occ' fin F0 h h0 hD *.
set G := \prod_(j.+1 <= i < (m + j).+1) g i in step.
have G0 : 0 <= G by apply: prodr_ge0 => i _; exact: (charge_most_ge0 chg).
have szmj : (m + j).+1 = (m + j.+1)%N by rewrite addnS.
pose a0 : (m + j.+1).-tuple S := [tuple of nseq (m + j.+1) x].
pose h' := envelope a0 h.
have h0' : nonnegative (m + j.+1) h by rewrite -szmj.
have h'0 : nonnegative j.+1 h' := envelope_ge0 a0 h0'.
have h'D : moves_by D j.+1 h' := envelope_moves a0 h0'.
have h'le s : size s = (m + j).+1 -> h' (drop m s) <= h s.
  move=> ss; rewrite -{2}(cat_take_drop m s); apply: envelope_le.
    by rewrite size_takel // ss szmj leq_addr.
  by rewrite size_drop ss szmj addKn.
have leh' s : size s = (m + j).+1 -> h s <= G * h' (drop m s).
  move=> ss; apply: le_envelope => // b s' sb ss'.
  have sd : size (drop m s) = j.+1 by rewrite size_drop ss szmj addKn.
  have st : size (take m s) = m by rewrite size_takel // ss szmj leq_addr.
  have sbs : size (b ++ s') = (m + j).+1 by rewrite size_cat sb ss' szmj.
  apply: le_trans (hD s (b ++ s') ss sbs) _; apply: ler_wpmul2r; first exact: h0.
  rewrite -{1}(cat_take_drop m s).
  have := @charge_cat (take m s) b (drop m s) s'; rewrite st sd sb ss' -szmj.
  by apply.
pose u z := W j z (fun r => h' (z :: r)).
have adm : admissible f occurs F finite j u.
  split=> [z|z z' oz oz' zz' fzz'].
    by apply: beyond_ge0 => s ss; apply: h'0; rewrite /= ss.
  pose b0 : (0 + j).-tuple S := [tuple of nseq j x].
  pose h2 s := h' (z' :: s); pose h3 := envelope b0 h2.
  have h20 : nonnegative (0 + j) h2 by move=> s ss; apply: h'0; rewrite /= ss.
  have f0 : 0 <= f j z z' := charge_each_ge0 chg j z z'.
  apply: (@le_trans _ _ (W j z (fun s => f j z z' * h3 s))).
    apply: beyond_le => s ss; apply: le_envelope => // b s' sb ss'.
    rewrite (size0nil sb) /= /h2.
    apply: le_trans (h'D _ (z' :: s') _ _) _; rewrite /= ?ss ?ss' //.
    apply: ler_wpmul2r; first by apply: h'0; rewrite /= ss'.
    by have := charge_cons chg z z' (etrans ss (esym ss')); rewrite ss.
  rewrite beyond_scale -mulrA ler_wpmul2l //.
  have jlt : (j < (m + j).+1)%N by rewrite ltnS leq_addl.
  apply: le_trans (IH j jlt z z' h3 oz oz' zz' fzz' (envelope_ge0 b0 h20)
    (envelope_moves b0 h20)) _.
  have [Fz0 _] := rec oz oz' zz' fzz'.
  apply: ler_wpmul2l => //; apply: beyond_le => s ss.
  exact: (@envelope_le 0 j b0 h2 [::] s).
have := step u adm; rewrite -!beyond_drop => stepu.
apply: (@le_trans _ _ (W (m + j).+1 x (fun s => G * h' (drop m s)))).
  exact: beyond_le.
rewrite beyond_scale; apply: le_trans stepu _.
by apply: ler_wpmul2l => //; exact: beyond_le.
Qed.

End Theory.
